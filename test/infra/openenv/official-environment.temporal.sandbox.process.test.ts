import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createEnvironments } from '../../../infra/openenv/environments/environments.ts';
import { createEnvironmentTool } from '../../../infra/openenv/environments/tool.ts';
import { createHelperSpawner } from '../../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../../infra/sandbox/local/provider.ts';
import { freePort } from '../../../infra/temporal/ports.ts';
import type { TestGateway } from '../../helpers/gateway/gateway.ts';
import { pythonWith } from '../../helpers/python-packages.ts';
import { type AgentRollouts, startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';
import { until } from '../../helpers/until.ts';
import { openEnvCore } from './openenv-core.ts';

const act = (guess?: number) => ({ name: 'environment', arguments: guess === undefined ? {} : { action: { guess } } });
const submit = { name: 'submit', arguments: {} };

describe("tasks of an environment that OpenEnv's own server serves, with mini in local sandboxes", () => {
  let rollouts: AgentRollouts;
  let calls: readonly { readonly name: string; readonly arguments: object }[] = [];
  let environments = '';

  before(async () => {
    rollouts = await startAgentRollouts(say, {
      providerIn: (home) => {
        environments = join(home, 'environments.json');
        return createLocalProvider({
          root: join(home, 'sandboxes'),
          stack: 'test-stack',
          spawner: createHelperSpawner(),
        });
      },
      taskRoot: 'tasks',
      hostTools: [
        createEnvironmentTool({ find: (name) => createEnvironments(environments, {}).find(name) }, { connectMs: 0 }),
      ],
    });
  });
  after(() => rollouts?.close());

  async function say(promptIds: readonly number[], { model: { tokens } }: TestGateway): Promise<readonly number[]> {
    const response = tokens.idOf('<tool_response>');
    const call = calls[promptIds.filter((id) => id === response).length];
    return tokens.encode(`${call ? `<tool_call>\n${JSON.stringify(call)}\n</tool_call>` : 'Done.'}<|im_end|>`);
  }

  it('are rewarded by the environment, which the agent does not see, and are infra without it', {
    timeout: 900_000,
  }, async (t) => {
    const found = await pythonWith(openEnvCore);
    if ('missing' in found) return t.skip(found.missing);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const script = join(import.meta.dirname, 'guess_environment.py');
    const server: ChildProcess = spawn(found.python, [script, String(port)], { stdio: 'inherit' });
    t.after(() => void server.kill('SIGKILL'));
    const ended = once(server, 'exit');
    await until(
      () =>
        fetch(`${url}/health`).then(
          ({ ok }) => ok,
          () => false,
        ),
      120_000,
    );
    const file = join(rollouts.home, 'tasks', 'guess.openenv.json');
    await mkdir(join(rollouts.home, 'tasks'));
    const about = { environment: 'guess', instruction: 'Guess the number.', image: 'temper-tasks:bookworm', seeds: 8 };
    await writeFile(file, JSON.stringify(about));
    await writeFile(environments, JSON.stringify({ guess: { url } }));
    const play = async (seed: number, made: typeof calls) => {
      calls = made;
      return rollouts.roll({ task: `openenv:${file}#guess-${seed}`, agent: 'mini', sandbox: 'local' });
    };

    const right = await play(7, [act(), act(3), act(7), submit]);
    assert.deepEqual(
      [right.result.outcome, right.result.reward, right.result.stop],
      ['scored', 1, 'submitted'],
      right.evidence,
    );
    assert.match(right.log, /guess a number from 0 to 9.*JSON schema.*guess/);
    assert.match(right.log, /higher/);
    assert.doesNotMatch(right.log, /0\.25|reward/);
    const early = await play(2, [act(9), submit]);
    assert.deepEqual([early.result.outcome, early.result.reward], ['scored', 0.25], early.evidence);
    const nothing = await play(2, [submit]);
    assert.deepEqual([nothing.result.outcome, nothing.result.reward], ['scored', 0], nothing.evidence);

    server.kill('SIGKILL');
    await ended;
    const lost = await play(3, [act(), submit]);
    assert.deepEqual(
      [lost.result.outcome, lost.result.failure?.type],
      ['infra', 'EnvironmentUnavailable'],
      lost.evidence,
    );
  });
});
