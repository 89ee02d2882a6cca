import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { judgeRefused } from '../../../infra/grading/judged.ts';
import type { Flag } from '../../../workflows/contracts/flags.ts';
import { workspaceTask } from '../../helpers/sandbox/workspaces.ts';
import { createFileStore } from '../../helpers/store/file-store.ts';

it('flags work that its tests never got, whatever the reason', async (context) => {
  const root = await mkdtemp(join(tmpdir(), 'temper-judged-'));
  context.after(() => rm(root, { recursive: true }));
  const { protection } = workspaceTask(new Map());
  const tricks = async (beyond: readonly Flag[]) => {
    const judged = { patch: Buffer.alloc(0), protection, subject: '', beyond };
    const { verdict } = await judgeRefused(createFileStore(root), 'tar ended with exit code 2', judged);
    return verdict.flags?.map(({ trick }) => trick);
  };
  assert.deepEqual(await tricks([]), ['unreadable']);
  assert.deepEqual(await tricks([{ trick: 'bulk', evidence: 'above a limit' }]), ['bulk']);
});
