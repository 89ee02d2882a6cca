import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import type { Spawner } from '../../../../infra/process/spawner/spawner.ts';
import type { Confinement } from '../../../../infra/sandbox/local/confinement.ts';
import { findHierarchy } from '../../../../infra/sandbox/local/control-group.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import type { Subject } from '../contract.ts';

export interface LocalSubjectOptions {
  /** Default: the confinement that this host would choose. */
  readonly confine?: (root: string) => Confinement;
  /** Default: this process itself starts the commands. */
  readonly createSpawner?: () => Spawner;
}

/** Local sandboxes in a directory of their own. */
export function localSubject(title: string, { confine, createSpawner }: LocalSubjectOptions = {}): Subject {
  const root = mkdtempSync(join(tmpdir(), 'local-sandboxes-'));
  after(() => rmSync(root, { recursive: true, force: true }));
  return {
    title,
    image: 'none',
    root,
    open: (stack) =>
      createLocalProvider({
        root,
        stack,
        ...(confine && { confinement: confine(root) }),
        ...(createSpawner && { spawner: createSpawner() }),
      }),
    killRecorder: async (sandbox, key) => {
      const stack = sandbox.split('-').slice(0, 3).join('-');
      const [pid] = readFileSync(join(root, stack, sandbox, 'ctl', key, 'pid'), 'utf8').split(' ');
      process.kill(-Number(pid), 'SIGKILL');
    },
    evidence: findHierarchy() ? ['disk', 'memory', 'pids'] : ['disk'],
  };
}
