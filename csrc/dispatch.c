/* Which tables this machine can run; decided here, at run time, never by the machine that built the wheel. */
#include "kernels.h"

#ifdef HM_HAVE_AVX2
static int has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

const struct hm_kernels *hm_table(size_t i) {
    const struct hm_kernels *tables[3] = {0};
    size_t count = 0;
#ifdef HM_HAVE_AVX2
    if (has_avx2()) tables[count++] = &hm_avx2;
#endif
#ifdef HM_HAVE_NEON
    tables[count++] = &hm_neon;
#endif
    tables[count++] = &hm_scalar;
    return i < count ? tables[i] : 0;
}
