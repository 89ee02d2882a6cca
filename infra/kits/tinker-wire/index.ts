/** The Tinker API on the wire, for both ends: its JSON bodies, its protobuf messages, and the paths of its checkpoints. */
export * from './bodies.ts';
export {
  decodeOutput,
  decodeRequest,
  encodeOutput,
  encodeRequest,
  outputFromJson,
  requestJson,
  type WireDatum,
  type WireForwardBackward,
  type WireOutput,
  type WireTensor,
} from './forward-backward.ts';
export { encodeSample, protobufType } from './messages.ts';
