import assert from 'node:assert/strict';
import { it } from 'node:test';
import { jsonEvents } from '../../../infra/engine/events.ts';
import { failsWith } from '../../helpers/engine/engine-events.ts';

async function* bytewise(text: string): AsyncGenerator<Buffer> {
  for (const byte of Buffer.from(text)) yield Buffer.from([byte]);
}

async function payloadsOf(text: string): Promise<unknown[]> {
  const payloads: unknown[] = [];
  for await (const payload of jsonEvents(bytewise(text), 'the stream')) payloads.push(payload);
  return payloads;
}

it('reads payloads over several data lines, whatever the line ends and wherever the bytes are cut', async () => {
  const text = ': comment\r\ndata: {"a":\r\ndata: "ü"}\r\n\r\nevent: other\ndata:[1]\n\ndata: [DONE]\n\ndata: 2\n\n';
  assert.deepEqual(await payloadsOf(text), [{ a: 'ü' }, [1]]);
});

it('reads a last event that no blank line closes, and leaves a line that was cut unread', async () => {
  assert.deepEqual(await payloadsOf('data: 1\n\ndata: 2\n'), [1, 2]);
  assert.deepEqual(await payloadsOf('data: 1\n\ndata: {"a"'), [1]);
  assert.deepEqual(await payloadsOf('data: 1\n\ndata:  [DONE] \n\ndata: 2\n\n'), [1]);
});

it('fails for a payload that is not JSON', async () => {
  await assert.rejects(
    payloadsOf('data: {\n\n'),
    failsWith('EngineInvalid', /the stream: expected JSON in the stream/),
  );
});
