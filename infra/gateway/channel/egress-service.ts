import { constants } from 'node:http2';
import { type Duplex, duplexPair } from 'node:stream';
import { joinStreams } from '../../agents/relay/join-streams.ts';
import { refuse, type Service } from './serve.ts';

/** Creates the service of a channel that hands each request to a proxy as a connection. */
export const createEgressService =
  ({ serve }: { serve(connection: Duplex): void }): Service =>
  (stream, { ':method': method }) => {
    if (method !== 'POST') return refuse(stream, constants.HTTP_STATUS_METHOD_NOT_ALLOWED);
    stream.respond({ ':status': constants.HTTP_STATUS_OK });
    // The channel itself listens to the stream's data, so a reader that pauses could miss some.
    const [inner, outer] = duplexPair();
    inner.once('close', () => inner.writableFinished || outer.destroy());
    outer.once('close', () => outer.writableFinished || inner.destroy());
    joinStreams(stream, outer);
    serve(inner);
  };
