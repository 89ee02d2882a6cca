import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createTraceActivities } from '../../../activities/control/traces.ts';
import { createVllmEngine } from '../../../infra/engine/vllm.ts';
import { secretOf } from '../../../infra/gateway/secret.ts';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import { cacheDirectory } from '../../../infra/setup/cache.mjs';
import { controlQueue, sessionId } from '../../../workflows/contracts/ids.ts';
import type { RolloutResult } from '../../../workflows/contracts/rollout.ts';
import { startTestGateway, type TestGateway } from '../../helpers/gateway.ts';
import type { ScriptedServer } from '../../helpers/scripted-server.ts';
import { startScriptedVllm } from '../../helpers/scripted-vllm.ts';
import { startTestServer, type TestServer } from '../../helpers/temporal.ts';
import { startTestWorkers, type TestWorkers } from '../../helpers/workers.ts';

const run = promisify(execFile);

/** A call of each agent's own tools: one that looks at the file with the bug, one that mends it. */
interface Case {
  readonly agent: string;
  readonly calls: readonly { readonly name: string; readonly arguments: object }[];
  /** Calls of the model beside the conversation, such as for a title. */
  readonly sideTurns: number;
}

const [wrong, right] = ['quotient **= right;', 'quotient /= right;'];
const task = 'generated:train/1/0';

const cases: readonly Case[] = [
  {
    agent: 'mini',
    calls: [
      { name: 'bash', arguments: { command: 'cat stock.js' } },
      { name: 'bash', arguments: { command: `sed -i 's|\\*\\*=|/=|' stock.js` } },
      { name: 'submit', arguments: {} },
    ],
    sideTurns: 0,
  },
  {
    agent: 'pi',
    calls: [
      { name: 'read', arguments: { path: 'stock.js' } },
      { name: 'edit', arguments: { path: 'stock.js', edits: [{ oldText: wrong, newText: right }] } },
      { name: 'bash', arguments: { command: 'cat stock.js' } },
    ],
    sideTurns: 0,
  },
];

describe('an unmodified agent in a sealed container', () => {
  const stack = 'test-stack';
  let home: string;
  let server: TestServer;
  let vllm: ScriptedServer;
  let gateway: TestGateway;
  let workers: TestWorkers;
  let current: Case;
  /** What the host can see of the sandbox while the agent waits for its second turn. */
  let seen: string;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-agents-'));
    server = await startTestServer();
    vllm = await startScriptedVllm(answer);
    const engine = createVllmEngine({ url: vllm.url, model: 'policy', method: 'reload' });
    gateway = await startTestGateway(engine);
    const { stackKey, agentSocketDir } = gateway.options;
    workers = await startTestWorkers({
      ...{ server, home, provider: createDockerProvider({ stack }), cacheDir: cacheDirectory(process.env) },
      gateway: { gatewayDir: agentSocketDir, secretOf: (session) => secretOf(stackKey, session) },
      control: createTraceActivities(gateway.control),
    });
  });
  after(async () => {
    await workers?.close();
    await gateway?.[Symbol.asyncDispose]();
    await vllm?.close();
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  /** The policy: the next call of the script, then a last word; a title where no tools are offered. */
  async function answer(promptIds: readonly number[]): Promise<readonly number[]> {
    const { tokens } = gateway.model;
    if (!tokens.decode(promptIds).includes('\n<tools>')) return tokens.encode('A title<|im_end|>');
    const response = tokens.idOf('<tool_response>');
    const step = promptIds.filter((id) => id === response).length;
    if (step === 1) seen = await lookFromOutside();
    const call = current.calls[step];
    const said = call === undefined ? 'It is mended.' : `I go on.\n<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
    return tokens.encode(`${said}<|im_end|>`);
  }

  for (const one of cases) {
    it(`solves a task: ${one.agent}`, { timeout: 300_000 }, async () => {
      current = one;
      seen = '';
      const startedAt = performance.now();
      const result: RolloutResult = await server.client.workflow.execute('rollout', {
        taskQueue: controlQueue,
        workflowId: `agent-${one.agent}`,
        args: [{ task, agent: one.agent, sampling: { maxTokensPerTurn: 2000 } }],
      });
      const seconds = (performance.now() - startedAt) / 1000;
      const log = result.agentLog === null ? '' : String(await workers.store.get(result.agentLog.digest));
      const told = `${JSON.stringify(result)}\n${log}\n${JSON.stringify(gateway.events)}`;
      assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], told);
      assert.ok(seconds < 60 || process.env.CI === undefined, `expected it within a minute, it took ${seconds} s`);

      assert.ok(result.trace !== null, told);
      const trace = await gateway.traceOf(result.trace);
      const ends = one.agent === 'mini' ? 0 : 1;
      const main = trace.segments.filter(({ kind }) => kind === 'main');
      assert.deepEqual([trace.turns.length, main.length], [one.calls.length + ends + one.sideTurns, 1], told);
      assert.deepEqual([trace.maskedTurns, trace.faultyCalls], [[], {}]);

      const secret = secretOf(gateway.options.stackKey, sessionId({ rollout: result.rollout, epoch: result.epochs }));
      assert.match(seen, /relay/, 'the look from outside has to see the agent at work');
      assert.ok(!seen.includes(secret), 'the secret is in docker inspect or in an argv');
      assert.ok(!log.includes(secret), "the secret is in the agent's log");
      assert.ok(!JSON.stringify([gateway.events, result]).includes(secret));
      assert.deepEqual(await workers.host.providers.get('docker')?.list(stack), []);
    });
  }

  async function lookFromOutside(): Promise<string> {
    const sandboxes = (await workers.host.providers.get('docker')?.list(stack)) ?? [];
    const looks = sandboxes.map(async ({ name }) => {
      const inspected = await run('docker', ['inspect', name]);
      const processes = await run('docker', ['top', name, '-eo', 'pid,args']);
      return inspected.stdout + processes.stdout;
    });
    return (await Promise.all(looks)).join('\n');
  }
});
