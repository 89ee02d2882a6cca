import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBubblewrap } from '../../infra/sandbox/local/bubblewrap.ts';
import { chooseConfinement } from '../../infra/sandbox/local/confinements.ts';
import type { Availability } from './facility.ts';

/** Whether a command can be shut in by bubblewrap here. Where not, local sandboxes use its sibling, and so do their tests. */
export function probeBubblewrap(): Availability {
  const root = mkdtempSync(join(tmpdir(), 'temper-bubblewrap-'));
  try {
    const chosen = chooseConfinement(root, [createBubblewrap]);
    if ('commandLine' in chosen) return { usable: true };
    return { usable: false, reason: `bubblewrap does not work here (${chosen.reasons.join('; ')})` };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
