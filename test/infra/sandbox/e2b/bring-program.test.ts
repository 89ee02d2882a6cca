import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { bringProgram } from '../../../../infra/sandbox/e2b/bring-program.ts';
import type { E2bShell } from '../../../../infra/sandbox/e2b/shell.ts';
import { unpackTree } from '../../../../infra/sandbox/files.ts';

it('brings a small program whole to a sandbox that takes a moment before it reads', async () => {
  const source = await mkdtemp(join(tmpdir(), 'temper-program-'));
  try {
    await writeFile(join(source, 'run'), 'echo ran\n');
    let files: readonly string[] = [];
    const shell: Pick<E2bShell, 'name' | 'run'> = {
      name: 'slow',
      async run({ stdin }) {
        await sleep(300);
        const tar = await buffer(stdin as AsyncIterable<Uint8Array>);
        const tree = await unpackTree(Readable.from([tar]), { maxFiles: 10, maxBytes: 2 ** 20 });
        files = [...tree.keys()];
        return { exitCode: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), truncated: false };
      },
    };
    const mount = { source, target: '/programs/small', readOnly: true } as const;
    await bringProgram(shell, { name: 'small', mount }, new AbortController().signal);
    assert.deepEqual(files, ['run']);
  } finally {
    await rm(source, { recursive: true });
  }
});
