/**
 * Serves an engine without latency: vLLM's API with the same reply to every request. It is a process of its own, so
 * that it takes no time from the measured one. Argument: the token ids of the reply, as JSON. Prints its address.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const ids: readonly number[] = JSON.parse(process.argv[2] ?? '[]');
const label = '0@bench';
const choice = {
  index: 0,
  token_ids: ids,
  logprobs: { content: ids.map(() => ({ logprob: -1 })) },
  finish_reason: 'stop',
  weight_versions: [{ version: label, start: 0, end: ids.length }],
};
const reply = `data: ${JSON.stringify({ choices: [choice] })}\n\ndata: [DONE]\n\n`;
const known: Readonly<Record<string, unknown>> = {
  '/health': {},
  '/v1/models': { data: [{ id: 'policy', max_model_len: 100_000_000 }] },
  '/is_paused': { is_paused: false },
  '/weight_info': { weight_version: label },
};

const server = createServer((request, response) => {
  request.resume();
  request.once('end', () => {
    if (request.url === '/inference/v1/generate') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(reply);
      return;
    }
    const body = known[request.url ?? ''];
    const headers = { 'content-type': 'application/json' };
    response.writeHead(body === undefined ? 404 : 200, headers).end(JSON.stringify(body ?? {}));
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`http://127.0.0.1:${port}\n`);
});
process.once('disconnect', () => process.exit());
