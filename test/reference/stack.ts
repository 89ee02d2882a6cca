import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { optionalData } from '../helpers/optional-data.ts';

/**
 * A real vLLM and a real SkyRL on this machine, from a set-up with a `stack` command: the one in the folder that
 * $TEMPER_TEST_REFERENCE_STACK names, else the optional one beside the checkout. Servers that run already are used and
 * left running; servers that are started here are stopped here.
 */
export interface ReferenceStack {
  readonly vllmUrl: string;
  readonly vllmModel: string;
  readonly skyrlUrl: string;
  readonly skyrlModel: string;
  /** SkyRL's checkpoints as this process sees them, and as the servers do. */
  readonly checkpoints: string;
  readonly checkpointsInside: string;
  /** Tokenizer and chat template of the model, as this process sees them. */
  readonly modelDir: string;
  close(): Promise<void>;
}

/** Ports other than the stack's own defaults, one of which the embedded policy server of `temper up` uses. */
const ports = { VLLM_PORT: process.env.VLLM_PORT ?? '8610', SKYRL_PORT: process.env.SKYRL_PORT ?? '8510' };
const vllmUrl = `http://127.0.0.1:${ports.VLLM_PORT}`;
const skyrlUrl = `http://127.0.0.1:${ports.SKYRL_PORT}`;
/** The time limit of a start. It is long, because the first one reads everything from a cold disk. */
const startMs = 600_000;

export async function openReferenceStack(): Promise<ReferenceStack> {
  const command = stackCommand();
  const wasUp = await answers();
  if (!wasUp) await start(command);
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const root = process.env.ROOT ?? join(cache, 'temper-reference-stack');
  return {
    vllmUrl,
    vllmModel: 'tiny-qwen3',
    skyrlUrl,
    skyrlModel: '/models/tiny-qwen3',
    checkpoints: join(root, 'trixie/weights'),
    checkpointsInside: '/weights',
    modelDir: join(root, 'trixie/models/tiny-qwen3'),
    close: async () => {
      if (!wasUp) await run(command, 'down');
    },
  };
}

function stackCommand(): string {
  const named = process.env.TEMPER_TEST_REFERENCE_STACK;
  const command = named === undefined ? optionalData.referenceStack : join(named, 'stack');
  if (existsSync(command)) return command;
  throw new Error(
    `the reference stack's command ${command} does not exist; set TEMPER_TEST_REFERENCE_STACK to a directory with it`,
  );
}

/** Starts the servers and waits for them; the command itself waits for two minutes only. */
async function start(command: string): Promise<void> {
  await run(command, 'up');
  for (const deadline = Date.now() + startMs; Date.now() < deadline; await sleep(1000)) {
    if (await answers()) return;
  }
  throw new Error(`${vllmUrl} and ${skyrlUrl} do not answer after ${startMs} ms; see the logs that ${command} names`);
}

async function answers(): Promise<boolean> {
  const health = [`${vllmUrl}/health`, `${skyrlUrl}/api/v1/healthz`];
  const replies = await Promise.all(health.map((url) => fetch(url).catch(() => null)));
  return replies.every((reply) => reply?.ok === true);
}

async function run(command: string, word: string): Promise<void> {
  const child = spawn(command, [word], { stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, ...ports } });
  await once(child, 'exit');
}
