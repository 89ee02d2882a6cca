import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import type { GatewayOptions } from '../../../infra/gateway/server.ts';
import type { Trace } from '../../../workflows/contracts/trace.ts';
import { createScriptedEngine } from '../engine/scripted-engine.ts';
import { type Reply, startTestGateway } from './gateway.ts';
import { type GatewayProcessSettings, sampleByPrompt } from './gateway-process.ts';

export const user = (content: string) => ({ role: 'user', content });

/** Runs four turns of one conversation, and returns the replies. */
export async function converse(send: (body: object) => Promise<Reply>): Promise<string[]> {
  const messages: object[] = [user('Begin.')];
  const replies: string[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    const reply = await send({ messages });
    assert.equal(reply.status, 200, reply.text);
    const { content } = reply.json.choices[0].message;
    replies.push(content);
    messages.push({ role: 'assistant', content }, user(`Continue ${turn}.`));
  }
  return replies;
}

export const withoutTimes = (trace: Trace): object => ({
  ...trace,
  turns: trace.turns.map((turn) => ({ ...turn, startedAt: 0, endedAt: 0 })),
});

/** Starts a gateway in its own process, on the directories of another gateway's options. */
export async function startProcess(
  options: GatewayOptions,
  changes: Partial<GatewayProcessSettings>,
): Promise<ChildProcess> {
  const settings: GatewayProcessSettings = {
    name: options.name,
    sockets: options.sockets,
    journalDir: options.journalDir,
    storeDir: join(dirname(options.journalDir), 'store'),
    modelDir: options.modelDir,
    stackKeyHex: Buffer.from(options.stackKeys[0]).toString('hex'),
    dieAfterTurn: null,
    dieInGeneration: null,
    ...changes,
  };
  const main = join(import.meta.dirname, 'gateway-process.ts');
  const child = spawn(process.execPath, [main, JSON.stringify(settings)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  await Promise.race([once(child.stdout ?? child, 'data'), exited]);
  assert.equal(child.exitCode, null);
  return child;
}

/** Runs the same conversation without any disturbance, for comparison. */
export async function referenceRun(session: string): Promise<{ replies: string[]; trace: object }> {
  await using gateway = await startTestGateway(createScriptedEngine({ script: sampleByPrompt }));
  const secret = await gateway.open(session);
  const replies = await converse((body) => gateway.chat(secret, body));
  return { replies, trace: withoutTimes(await gateway.traceOf(await gateway.control.seal(session))) };
}
