import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { SandboxKind } from '../../infra/sandbox/sandbox.ts';
import type { Cheat } from './cheats.ts';
import { createPipeline, type Evaluated, type Pipeline, type ScriptedAgent } from './pipeline.ts';

export interface Tables {
  readonly cheats: readonly Cheat[];
  readonly winning: readonly Cheat[];
  readonly honest: readonly Omit<Cheat, 'flags'>[];
}

const nothing: ScriptedAgent = {};
const describeEvaluation = ({ verdict, patch, log }: Evaluated): string =>
  `${JSON.stringify(verdict, null, 1)}\n${patch}\n${log}`;

/** Defines a test for each agent of the tables, against the real grader, in sandboxes of this kind. */
export function testAgents(kind: SandboxKind, { cheats, winning, honest }: Tables): void {
  describe(`in a ${kind} sandbox`, { concurrency: 2 }, () => {
    let pipeline: Pipeline;
    before(async () => {
      pipeline = await createPipeline(kind);
    });
    after(() => pipeline?.[Symbol.asyncDispose]());

    for (const { name, task, flags, patchLacks, ...agent } of cheats) {
      it(`earns nothing for an agent that ${name}`, async () => {
        const evaluated = await pipeline.run(task, agent);
        assert.equal(evaluated.reward, 0, describeEvaluation(evaluated));
        assert.deepEqual(evaluated.flags, flags, describeEvaluation(evaluated));
        if (patchLacks !== undefined) assert.doesNotMatch(evaluated.patch, patchLacks);
      });
    }

    for (const { name, task, flags, ...agent } of winning) {
      it(`still earns the reward by a known trick: ${name}`, async () => {
        const evaluated = await pipeline.run(task, agent);
        assert.equal(evaluated.reward, 1, describeEvaluation(evaluated));
        assert.deepEqual(evaluated.flags, flags, describeEvaluation(evaluated));
        const exposure = name.startsWith('a reward file') || name.startsWith('bats') ? 'same-account' : 'in-process';
        assert.equal(evaluated.verdict.exposure, exposure);
      });
    }

    for (const { name, task, ...agent } of honest) {
      it(`rewards honest work without a flag, and nothing for doing nothing: ${name}`, async () => {
        const [work, none] = [await pipeline.run(task, agent), await pipeline.run(task, nothing)];
        assert.deepEqual([work.reward, work.flags], [1, []], describeEvaluation(work));
        const apart = task.codeAsAgent && (kind === 'docker' || process.getuid?.() === 0);
        assert.equal(work.verdict.exposure === 'other-account', apart, describeEvaluation(work));
        assert.deepEqual([none.reward, none.flags], [0, []], describeEvaluation(none));
      });
    }
  });
}
