import { z } from 'zod';
import type { Image } from '../../../kits/chat-tokens/index.ts';
import { GatewayError } from '../../gateway-error.ts';
import { quoted } from './reading.ts';

/** A content part of any type. */
export const contentPart = z.looseObject({ type: z.string() });
export type ContentPart = z.output<typeof contentPart>;
export const content = z.union([z.string(), z.null(), z.array(contentPart)]).optional();
export type Content = z.output<typeof content>;

export interface TextParts {
  /** The part types that are text, each with the field that holds it. */
  readonly fields: ReadonlyMap<string, string>;
  readonly separator: string;
}

/** The text of a message's content, in which a note stands for each part that is no text, and its images if it has any. */
export interface ReadContent {
  readonly text: string;
  /** Text and images in order. */
  readonly parts?: readonly (string | Image)[];
}

/** Returns the text of a message's content. Throws a GatewayError for a part of an unknown type. */
export const textOf = (value: Content, at: string, parts: TextParts): string => contentOf(value, at, parts).text;

export function contentOf(value: Content, at: string, parts: TextParts): ReadContent {
  if (typeof value === 'string') return { text: value };
  const read = (value ?? []).map((part, index) => partOf(part, `${at}.${index}`, parts));
  return joined(read, parts);
}

/** Joins parts to the content of a message. */
export function joined(read: readonly (string | Image)[], { separator }: TextParts): ReadContent {
  const text = read.map((part) => (typeof part === 'string' ? part : imageNote)).join(separator);
  return read.some((part) => typeof part !== 'string') ? { text, parts: read } : { text };
}

/** Reads a part as text, with a note in place of what can't be shown, or as an image. */
export function partOf(part: ContentPart, at: string, { fields }: TextParts): string | Image {
  const field = fields.get(part.type);
  const text = field === undefined ? undefined : (part[field] ?? '');
  if (typeof text === 'string') return text;
  // The upstream server would fetch an image at an address for an agent that has no network itself.
  const image = images.safeParse(part).data;
  if (image?.url.startsWith('data:')) return image;
  const other = others.safeParse(part).data;
  if (other !== undefined) return other;
  const what = notes.get(part.type);
  if (what !== undefined) return `[${what}: not shown to this model]`;
  const types = [...fields.keys()].join(', ');
  throw new GatewayError(
    'unsupported',
    `${at}: expected a part of type ${types}, or an image or a file, got ${quoted(part.type)}`,
  );
}

const imageNote = '[image: not shown to this model, which reads text only]';

const url = z.union([z.string(), z.looseObject({ url: z.string() }).transform((image) => image.url)]);
const source = z.discriminatedUnion('type', [
  z
    .looseObject({ type: z.literal('base64'), media_type: z.string(), data: z.string() })
    .transform(({ media_type, data }) => `data:${media_type};base64,${data}`),
  z.looseObject({ type: z.literal('url'), url: z.string() }).transform((image) => image.url),
]);

/** The images of all APIs. */
const images = z.discriminatedUnion('type', [
  z
    .looseObject({ type: z.literal('image_url'), image_url: url })
    .transform(({ image_url }): Image => ({ url: image_url })),
  z
    .looseObject({ type: z.literal('input_image'), image_url: url })
    .transform(({ image_url }): Image => ({ url: image_url })),
  z.looseObject({ type: z.literal('image'), source }).transform(({ source: found }): Image => ({ url: found })),
]);

const texts = z.array(z.looseObject({ text: z.string().nullish() }));

/** The parts whose text is not in a field of their own. */
const others = z.discriminatedUnion('type', [
  z
    .looseObject({ type: z.literal('document'), source: z.looseObject({ type: z.literal('text'), data: z.string() }) })
    .transform(({ source: found }) => found.data),
  z
    .looseObject({ type: z.literal('search_result'), title: z.string().nullish(), content: texts })
    .transform(({ title, content: found }) => [title, ...found.map(({ text }) => text)].filter(Boolean).join('\n')),
  z
    .looseObject({ type: z.literal('tool_reference'), tool_name: z.string() })
    .transform(({ tool_name }) => `[tool: ${tool_name}]`),
]);

/** The words for parts that only a note stands for. */
const notes: ReadonlyMap<string, string> = new Map([
  ['image', 'image'],
  ['image_url', 'image'],
  ['input_image', 'image'],
  ['input_audio', 'audio'],
  ['audio', 'audio'],
  ['video_url', 'video'],
  ['document', 'document'],
  ['file', 'file'],
  ['input_file', 'file'],
  ['container_upload', 'file'],
  ['encrypted_content', 'encrypted text'],
]);
