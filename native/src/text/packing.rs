//! Numbers packed into as many bits as the largest needs.

/// Bytes that `count` numbers of `width` bits take.
pub fn width_bytes(count: usize, width: u8) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Bits that the largest of some numbers needs.
pub fn width(numbers: &[u32]) -> u8 {
    (32 - numbers.iter().fold(0, |all, n| all | n).leading_zeros()) as u8
}

pub fn pack(numbers: &[u32], width: u8, out: &mut Vec<u8>) {
    let (mut buffer, mut filled) = (0u64, 0u32);
    for number in numbers {
        buffer |= u64::from(*number) << filled;
        filled += u32::from(width);
        while filled >= 8 {
            out.push(buffer as u8);
            buffer >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(buffer as u8);
    }
}

/// Read `out.len()` numbers; `bytes` must go on for seven bytes behind them.
#[inline]
pub fn unpack(bytes: &[u8], width: u8, out: &mut [u32]) {
    if width == 0 {
        return out.fill(0);
    }
    let mask = (1u64 << width) - 1;
    for (i, number) in out.iter_mut().enumerate() {
        let bit = i * width as usize;
        let window = u64::from_le_bytes(bytes[bit / 8..bit / 8 + 8].try_into().expect("eight bytes"));
        *number = (window >> (bit % 8) & mask) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in proptest::collection::vec(any::<u32>(), 0..129), shift in 0u32..32) {
            let numbers: Vec<u32> = numbers.iter().map(|n| n >> shift).collect();
            let width = width(&numbers);
            let mut bytes = Vec::new();
            pack(&numbers, width, &mut bytes);
            prop_assert_eq!(bytes.len(), width_bytes(numbers.len(), width));
            bytes.extend([0xff; 8]);
            let mut out = vec![0; numbers.len()];
            unpack(&bytes, width, &mut out);
            prop_assert_eq!(out, numbers);
        }
    }
}
