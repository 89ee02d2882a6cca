import assert from 'node:assert/strict';
import { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { it } from 'node:test';
import { socketOf } from '../../../../infra/gateway/sockets.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../../helpers/gateway/gateway.ts';
import { until } from '../../../helpers/until.ts';

const tokens = 20_000;

it('a client that does not read its reply has little of it in memory, and gets all of it once it reads', async (t) => {
  const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: Array(tokens).fill(65) }) });
  await using gateway = await startTestGateway(engine);
  const sampling = { temperature: 1, topP: 1, topK: -1, maxTokensPerTurn: 2 * tokens };
  const secret = await gateway.open('s', { sampling });
  const write = t.mock.method(ServerResponse.prototype, 'write');
  const client = connect(socketOf(gateway.options.sockets.agents, gateway.options.name));
  t.after(() => client.destroy());
  client.pause();
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'Go.' }], stream: true });
  client.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${secret}\r\nconnection: close\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await until(() => gateway.events.some(({ kind }) => kind === 'turn'));
  const written = write.mock.calls.reduce((sum, { arguments: [text] }) => sum + String(text).length, 0);
  assert.ok(written > 0 && written < 1_000_000, `${written} bytes`);

  const chunks: Buffer[] = [];
  for await (const chunk of client) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  assert.equal(text.match(/"content":"A"/g)?.length, tokens);
  assert.match(text, /data: \[DONE\]/);
});
