import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBubblewrap } from '../../infra/sandbox/local/bubblewrap.ts';
import { chooseConfinement } from '../../infra/sandbox/local/choose-confinement.ts';
import type { Availability } from './need.ts';

/** Returns whether bubblewrap can confine a command here. Where it cannot, local sandboxes and their tests use its sibling. */
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
