// Runs a gateway in its own process, so that tests can kill it; its settings are JSON in the first argument.

import { createHash } from 'node:crypto';
import { startGateway } from '../../../infra/gateway/server.ts';
import type { GatewaySockets } from '../../../infra/gateway/sockets.ts';
import { createUpstreams } from '../../../infra/gateway/upstream/upstreams.ts';
import { createScriptedEngine, type ScriptedRequest, type Step } from '../engine/scripted-engine.ts';
import { createSingleEngine } from '../engine/single-engine.ts';
import { createFileStore } from '../store/file-store.ts';

export interface GatewayProcessSettings {
  readonly name: string;
  readonly sockets: GatewaySockets;
  readonly journalDir: string;
  readonly storeDir: string;
  readonly modelDir: string;
  readonly stackKeyHex: string;
  /** Kills itself (SIGKILL) when this turn is in the journal and its reply has not ended; never when null. */
  readonly dieAfterTurn: number | null;
  /** Kills itself when this many tokens of this generation were sampled; never when null. */
  readonly dieInGeneration: number | null;
}

/** Samples a reply that depends on the prompt and the seed alone, as a real engine does. */
export function sampleByPrompt({ tokenIds, seed }: ScriptedRequest): Step {
  const digest = createHash('sha256').update(`${seed}:${tokenIds.join()}`).digest();
  const ids = [...digest.subarray(0, 12)].map((byte) => 97 + (byte % 26));
  return { kind: 'say', ids: [...ids, 258], version: tokenIds.length };
}

if (process.argv[1] === import.meta.filename) {
  const settings: GatewayProcessSettings = JSON.parse(process.argv[2] ?? '{}');
  const die = (): boolean => process.kill(process.pid, 'SIGKILL');
  const engine = createScriptedEngine({
    script: async (request, index) => {
      if (index === settings.dieInGeneration) setTimeout(die, 20);
      return sampleByPrompt(request);
    },
    delayMs: 10,
  });
  await startGateway({
    engineGraceMs: 60_000,
    ...settings,
    policies: createSingleEngine(engine, 60_000),
    upstreams: createUpstreams('/nonexistent/upstreams.json', {}),
    store: createFileStore(settings.storeDir),
    stackKeys: [Buffer.from(settings.stackKeyHex, 'hex')],
    log: (event) => {
      if (event.kind === 'turn' && event.turn === settings.dieAfterTurn) die();
    },
  });
  process.stdout.write('ready\n');
}
