"""Makes replacement.txt: candidates for the places of damaged samples, by a Philox of its own.

Run: python3 replacement.py > replacement.txt
"""

M = (0xD2511F53, 0xCD9E8D57)
W = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF


def philox(counter, key):
    """Philox4x32-10 as Salmon et al. give it (SC'11, section 4)."""
    left0, right0, left1, right1 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = M[0] * left0, M[1] * left1
        left0, right0, left1, right1 = (
            (p1 >> 32) ^ right0 ^ k0,
            p1 & MASK,
            (p0 >> 32) ^ right1 ^ k1,
            p0 & MASK,
        )
        k0, k1 = (k0 + W[0]) & MASK, (k1 + W[1]) & MASK
    return left0, right0, left1, right1


# Random123's known answer (kat_vectors).
assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)


def candidate(seed, epoch, sample, samples, number):
    counter = (sample & MASK, sample >> 32, epoch, 255 << 24 | 2 << 16 | number)
    words = philox(counter, (seed & MASK, seed >> 32))
    drawn = (words[0] | words[1] << 32) * (samples - 1) >> 64
    return drawn + (drawn >= sample)


print("# seed epoch sample samples, then the first candidates")
for case in [(0, 0, 0, 2), (42, 0, 7, 23), (42, 1, 7, 23), (42, 0, 8, 23),
             (2**64 - 1, 2**32 - 1, 2**40, 2**41), (11, 3, 1281166, 1281167)]:
    print(*case, *(candidate(*case, number) for number in range(8)))
