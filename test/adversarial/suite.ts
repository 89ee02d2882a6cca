import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { SandboxKind } from '../../infra/sandbox/sandbox.ts';
import type { Cheat } from './cheats.ts';
import { createPipeline, type Ending, type Pipeline, type ScriptedAgent } from './pipeline.ts';

export interface Tables {
  readonly cheats: readonly Cheat[];
  readonly winning: readonly Cheat[];
  readonly honest: readonly Omit<Cheat, 'flags'>[];
}

const nothing: ScriptedAgent = {};
const shown = ({ verdict, patch, log }: Ending): string => `${JSON.stringify(verdict, null, 1)}\n${patch}\n${log}`;

/** Every agent of the tables, against the grader as it is, in sandboxes of this kind. */
export function tryAll(kind: SandboxKind, { cheats, winning, honest }: Tables): void {
  describe(`in a ${kind} sandbox`, { concurrency: 2 }, () => {
    let pipeline: Pipeline;
    before(async () => {
      pipeline = await createPipeline(kind);
    });
    after(() => pipeline?.[Symbol.asyncDispose]());

    for (const { name, task, flags, patchLacks, ...agent } of cheats) {
      it(`an agent that ${name} gets what doing nothing gets`, async () => {
        const ending = await pipeline.attempt(task, agent);
        assert.equal(ending.reward, 0, shown(ending));
        assert.deepEqual(ending.flags, flags, shown(ending));
        if (patchLacks !== undefined) assert.doesNotMatch(ending.patch, patchLacks);
      });
    }

    for (const { name, task, flags, ...agent } of winning) {
      it(`a trick that still wins: ${name}`, async () => {
        const ending = await pipeline.attempt(task, agent);
        assert.equal(ending.reward, 1, shown(ending));
        assert.deepEqual(ending.flags, flags, shown(ending));
        const exposure = name.startsWith('a reward file') || name.startsWith('bats') ? 'same-account' : 'in-process';
        assert.equal(ending.verdict.exposure, exposure);
      });
    }

    for (const { name, task, ...agent } of honest) {
      it(`honest work is worth 1 and raises no flag, and doing nothing is worth 0: ${name}`, async () => {
        const [work, none] = [await pipeline.attempt(task, agent), await pipeline.attempt(task, nothing)];
        assert.deepEqual([work.reward, work.flags], [1, []], shown(work));
        const apart = task.codeAsAgent && (kind === 'docker' || process.getuid?.() === 0);
        assert.equal(work.verdict.exposure === 'other-account', apart, shown(work));
        assert.deepEqual([none.reward, none.flags], [0, []], shown(none));
      });
    }
  });
}
