import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { isKeepAlive } from '../../../infra/agents/relay/events.ts';
import { retryHeader } from '../../../infra/agents/relay/protocol.ts';
import { createProxy } from '../../../infra/agents/relay/proxy.ts';
import { createSocketRoute } from '../../../infra/agents/relay/socket-route.ts';
import type { FinishedReply } from '../../../infra/gateway/dialects/dialect.ts';
import { dialects } from '../../../infra/gateway/dialects/index.ts';
import { freePort } from '../../../infra/temporal/ports.ts';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { sendTo, startTestGateway } from '../../helpers/gateway/gateway.ts';
import { until } from '../../helpers/until.ts';

type Answer = (response: ServerResponse) => void;

let dir: string;
/** The gateway's answers to the next requests, in order. */
let answers: Answer[] = [];
const gateway = createServer((request, response) => {
  request.resume().once('end', () => answers.shift()?.(response));
});
let relay: ReturnType<typeof createProxy>;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'temper-relay-'));
  relay = createProxy(createSocketRoute({ directory: join(dir, 'gw'), retryMs: 60_000 }));
  await mkdir(join(dir, 'gw'));
  await once(gateway.listen(join(dir, 'gw', 'gateway.sock')), 'listening');
  await once(relay.listen(join(dir, 'relay.sock')), 'listening');
});
after(async () => {
  for (const server of [relay, gateway]) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  await rm(dir, { recursive: true });
});

const askAt = (socket: string) => sendTo(socket, { method: 'POST', path: '/x', body: '{}' });
const ask = () => askAt(join(dir, 'relay.sock'));

/** Starts a relay with a retry limit of its own. */
async function startRelay(retryMs: number, directory = join(dir, 'gw')) {
  const proxy = createProxy(createSocketRoute({ directory, retryMs }));
  const socket = join(dir, `relay-${retryMs}-${basename(directory)}.sock`);
  await once(proxy.listen(socket), 'listening');
  return {
    ask: () => askAt(socket),
    async [Symbol.asyncDispose]() {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
const head = { 'content-type': 'text/event-stream' };
const stream =
  (text: string | Buffer): Answer =>
  (response) =>
    response.writeHead(200, head).end(text);
/** The reply of a gateway that is killed: the text arrives, its end never does. */
const cut =
  (text: Buffer): Answer =>
  (response) => {
    response.writeHead(200, head).flushHeaders();
    response.write(text, () => response.destroy());
  };

const said: FinishedReply = {
  key: 'k',
  createdAt: 5_000,
  promptTokens: 7,
  finishReason: 'stop',
  sampledTokens: 3,
  reply: {
    role: 'assistant',
    text: 'I löök.',
    reasoning: 'hm',
    toolCalls: [{ id: 'a', name: 'run', arguments: '{"a":"x\\n\\ny"}' }],
  },
};
const bodies: Readonly<Record<string, object>> = {
  'openai-responses': { model: 'm', input: 'x', tools: [{ type: 'function', name: 'run', parameters: {} }] },
};

/** The stream of the reply, with a keep-alive after each piece that `alive` names by its index. */
function streamOf(dialect: (typeof dialects)[number], alive: readonly number[]): Buffer {
  const body = { model: 'm', messages: [{ role: 'user', content: 'x' }], ...bodies[dialect.name] };
  const writer = dialect.read({ ...body, stream: true }).stream(said);
  const pieces = [
    () => writer.begin(),
    () => writer.delta({ kind: 'reasoning', text: 'hm' }),
    () => writer.delta({ kind: 'text', text: 'I l' }),
    () => writer.delta({ kind: 'text', text: 'öök.' }),
    () => writer.finish(said),
  ];
  return Buffer.from(
    pieces.map((piece, at) => piece() + (alive.includes(at) && at < 4 ? writer.keepAlive() : '')).join(''),
  );
}

const eventsOf = (text: string): string[] => text.split(/(?<=\n\n)/);
const isAlive = (event: string): boolean => isKeepAlive(Buffer.from(event));

describe('an agent that prints faster than its log is read', () => {
  it('prints all of it, also after the relay has reported an error', async () => {
    const main = join(import.meta.dirname, '../../../infra/agents/relay/main.ts');
    const port = await freePort();
    const cutRequest = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'POST / HTTP/1.1\\r\\nhost: a\\r\\ncontent-length: 9\\r\\n\\r\\ncut' >&3; exec 3>&-`;
    const agent = ['bash', '-c', `${cutRequest}; sleep 1; exec head -c 1000000 /dev/zero`];
    const script = '{ "$@" 2>&1; echo "exit code $?" >&2; } | { sleep 2; cat; }';
    const command = [process.execPath, main, `127.0.0.1:${port}`, dir, 'exec', ...agent];
    const { stdout, stderr } = spawnSync('sh', ['-c', script, 'sh', ...command], { encoding: 'latin1' });
    assert.match(stderr, /exit code 0/);
    assert.match(stdout, /^relay: starts bash\nrelay: /);
    assert.equal(stdout.match(/\0/g)?.length, 1_000_000);
  });
});

describe('an interrupted reply', () => {
  for (const dialect of dialects) {
    it(`is continued in ${dialect.name}, wherever it was interrupted and wherever its keep-alives are`, async () => {
      const positions = fc.uniqueArray(fc.nat(3), { maxLength: 4 });
      const whole = streamOf(dialect, []).toString();
      assert.ok(!eventsOf(whole).some(isAlive));
      await fc.assert(
        fc.asyncProperty(
          positions,
          positions,
          fc.double({ min: 0, max: 1, noNaN: true }),
          async (first, second, share) => {
            const [begun, again] = [streamOf(dialect, first), streamOf(dialect, second)];
            assert.equal(eventsOf(again.toString()).filter(isAlive).length, second.length);
            answers = [cut(begun.subarray(0, Math.floor(share * (begun.length - 1)))), stream(again)];
            const { text } = await ask();
            const got = eventsOf(text).filter((event) => !isAlive(event));
            assert.equal(got.join(''), whole);
          },
        ),
        { numRuns: 40 },
      );
    });
  }

  it('is requested again while the next gateway is unreachable, even after the agent has its beginning', async () => {
    answers = [
      cut(Buffer.from('data: 1\n\nda')),
      (response) => response.writeHead(503, { [retryHeader]: '1' }).end('{}'),
      stream('data: 1\n\ndata: 2\n\n'),
    ];
    assert.equal((await ask()).text, 'data: 1\n\ndata: 2\n\n');
  });

  it('is aborted for the agent when the retry gives different content or another status', async () => {
    const begun = cut(Buffer.from('data: 1\n\n'));
    for (const other of [
      stream('data: 2\n\n'),
      (response: ServerResponse) => response.writeHead(409, head).end('data: 1\n\n'),
    ]) {
      answers = [begun, other];
      await assert.rejects(ask(), { code: 'ECONNRESET' });
    }
  });
});

describe('an error reply', () => {
  const refusal =
    (text: string, headers: Record<string, string>): Answer =>
    (response) =>
      response.writeHead(503, headers).end(text);

  it('reaches the agent unchanged when the gateway reports an unreachable engine, which it has waited for itself', async () => {
    answers = [refusal('{"error":"engine"}', { 'retry-after': '5', 'content-type': 'application/json' })];
    const { status, text, headers } = await ask();
    assert.deepEqual([status, text, headers['retry-after']], [503, '{"error":"engine"}', '5']);
  });

  it('that asks for a retry reaches the agent once no gateway has answered for the whole limit', async () => {
    await using relay = await startRelay(50);
    const closing = refusal('{"error":"closing"}', { [retryHeader]: '1', 'retry-after': '5' });
    // On a busy machine the first answer may come after the whole limit.
    await until(async () => {
      answers = Array.from({ length: 100 }, () => closing);
      const { status, text, headers } = await relay.ask();
      assert.deepEqual([status, text, headers['retry-after']], [503, '{"error":"closing"}', '5']);
      return answers.length < 99;
    });
  });

  it('comes from the relay, in a form that every SDK reads, when there is no gateway at all', async () => {
    await using lonely = await startRelay(50, join(dir, 'empty'));
    const { status, text, headers } = await lonely.ask();
    assert.deepEqual([status, headers['retry-after']], [503, '5']);
    assert.deepEqual(JSON.parse(text).error.code, 'gateway_unavailable');
  });
});

it('starts a new retry period when a gateway fails after it kept the request for a while', async () => {
  const retryMs = 3_000;
  await using relay = await startRelay(retryMs);
  const broken: Answer = (response) => response.destroy();
  const brokenLater: Answer = (response) => void setTimeout(() => response.destroy(), retryMs + 300);
  answers = [broken, brokenLater, broken, stream('data: 1\n\n')];
  assert.equal((await relay.ask()).text, 'data: 1\n\n');
});

it('hides a gateway restart in the middle of a turn from an agent that streams', async () => {
  const engine = createScriptedEngine({
    script: (_, index) => (index === 0 ? { kind: 'hang', ids: [65] } : { kind: 'say', ids: [65, 66] }),
    chunk: 1,
  });
  await using real = await startTestGateway(engine);
  const secret = await real.open('a.1');
  const proxy = createProxy(createSocketRoute({ directory: real.options.sockets.agents, retryMs: 60_000 }));
  const socket = join(dir, 'proxy.sock');
  await once(proxy.listen(socket), 'listening');
  try {
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'x' }], stream: true });
    const headers = { authorization: `Bearer ${secret}` };
    const asked = sendTo(socket, { method: 'POST', path: '/v1/chat/completions', headers, body });
    await until(() => engine.running === 1);
    await real.restart();
    const { text } = await asked;
    assert.equal(text.match(/"content":"[AB]"/g)?.join(), '"content":"A","content":"B"', text);
    assert.ok(text.endsWith('data: [DONE]\n\n') && !text.includes('error'), text);
    assert.deepEqual([engine.requests.length, (await real.control.seal('a.1')).turns], [2, 1]);
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});
