// Keeps a stream busy without touching memory, so that what is measured behind it is enqueued before it can begin.
extern "C" __global__ void hold(unsigned long long cycles) {
    const long long begin = clock64();
    while (static_cast<unsigned long long>(clock64() - begin) < cycles) {
    }
}
