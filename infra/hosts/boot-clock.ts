import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/** A clock of one boot of this machine, which all of its processes share. It never jumps, and counts suspended time. */
export interface BootClock {
  /** Differs from boot to boot, where the kernel has such an id. */
  readonly boot: string;
  nowMs(): number;
}

export const bootClock: BootClock = {
  boot: readBootId(),
  nowMs: () => uptime() * 1000,
};

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return ''; // only Linux has one; elsewhere a reboot shows by a clock that starts again
  }
}
