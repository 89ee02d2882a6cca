import type { FinishedReply, ReplyHead, StreamWriter } from '../dialect.ts';
import { createPartStream } from '../shared/parts.ts';
import { typedEvent } from '../shared/sse.ts';
import { itemOf, type StreamEvent } from './items.ts';
import { failed, finished, inProgress } from './object.ts';
import type { ResponsesRequest } from './request.ts';
import type { ClientTools } from './tools.ts';

export function createResponsesWriter(request: ResponsesRequest, tools: ClientTools, head: ReplyHead): StreamWriter {
  let sequence = 0;
  const write = (events: readonly StreamEvent[]): string =>
    events.map((event) => typedEvent({ ...event, sequence_number: sequence++ })).join('');

  const output: object[] = [];
  let isCut = false;
  const parts = createPartStream({
    open: (part, index) => write(itemOf(part, index, head, tools).opening()),
    grow: (part, index, text) => write(itemOf(part, index, head, tools).growth(text)),
    close(part, index, isLast) {
      const item = itemOf(part, index, head, tools);
      output.push(item.finished(isCut && isLast));
      return write(item.closing(isCut && isLast));
    },
  });

  function finish(reply: FinishedReply): string {
    isCut = reply.finishReason === 'length';
    const rest = parts.finish(reply.reply);
    const response = finished(request, reply, output);
    return rest + write([{ type: `response.${response.status}`, response }]);
  }

  return {
    begin() {
      const response = inProgress(request, head);
      return write([
        { type: 'response.created', response },
        { type: 'response.in_progress', response },
      ]);
    },
    delta: (delta) => parts.delta(delta),
    // The keep-alive is an event that the SDKs know, since Codex ignores comments when it checks whether a stream is alive.
    // It repeats the number of the event before it: a replayed reply has its keep-alives elsewhere, and must number all other
    // events the same.
    keepAlive: () => typedEvent({ type: 'keepalive', sequence_number: sequence - 1 }),
    finish,
    fail: (error) => write([{ type: 'response.failed', response: failed(request, head, error, output) }]),
    // As an HTTP status, Codex would treat this error as a bad request and give up; inside a stream, it compacts.
    failsInStream: ({ kind }) => kind === 'context-overflow',
  };
}
