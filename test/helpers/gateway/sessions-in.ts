import assert from 'node:assert/strict';
import { join } from 'node:path';
import { createSessions, type Sessions } from '../../../infra/gateway/sessions/sessions.ts';
import { createToolbox } from '../../../infra/gateway/tools/toolbox.ts';
import { createUpstreams } from '../../../infra/gateway/upstream/upstreams.ts';
import { endlessLease } from '../../../infra/hosts/lease.ts';
import { loadModel } from '../../../infra/kits/chat-tokens/index.ts';
import { createScriptedEngine } from '../engine/scripted-engine.ts';
import { createSingleEngine } from '../engine/single-engine.ts';
import { writeTinyModel } from '../models/tiny-model.ts';
import { createFileStore } from '../store/file-store.ts';

/** Creates the sessions of a gateway without its sockets. Its engine says the same in each turn. */
export async function sessionsIn(home: string, journalDir: string): Promise<Sessions> {
  const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [1, 2, 3] }) });
  await using tiny = await writeTinyModel();
  const model = await loadModel(tiny.dir);
  return createSessions({
    policies: createSingleEngine(engine, 1_000),
    model,
    lease: endlessLease,
    engineGraceMs: 1_000,
    journalDir,
    sharedJournals: null,
    name: 'gateway',
    idleMs: -1,
    store: createFileStore(join(home, 'store')),
    presence: { confirm: async () => {}, absences: async () => [] },
    peers: { controlOf: () => assert.fail('expected no peer to be asked') },
    upstreams: createUpstreams('/nonexistent/upstreams.json', {}),
    onTurn: () => {},
    toolbox: createToolbox(),
    onHostToolFailure: () => {},
    onCutUnwritten: () => {},
    taskFiles: async () => new Map(),
  });
}
