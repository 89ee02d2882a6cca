import { z } from 'zod';
import { readOperatorFile } from '../../operator-file.ts';
import { sha256 } from '../../store/files.ts';
import { SandboxFailure } from '../failure.ts';
import type { E2bApi } from './api.ts';

/** A template, and the metadata key by which a server that knows such a key replaces the template's image. */
const chosen = z.strictObject({ template: z.string().min(1), imageKey: z.string().min(1) });
/** The templates of images whose own does not follow the rule, by image; `*` stands for every image without its own line. */
const shape = z.record(z.string().min(1), z.union([z.string().min(1), chosen]));

/** The time for which a template that was found is not looked for again. */
const foundMs = 300_000;

export interface ImageTemplate {
  readonly name: string;
  /** The metadata of a sandbox by which the server replaces the template's image. */
  readonly metadata: Readonly<Record<string, string>>;
}

export interface Templates {
  /** Returns the template of an image. Throws MissingImage if the server has none. */
  of(image: string): Promise<ImageTemplate>;
}

/** The most letters of an image that its template's name repeats. */
const readableLetters = 80;

/**
 * The name of an image's template where `e2b.json` names none: `ghcr.io/a/b:1.2` has `ghcr-io-a-b-1-2-` and the first letters of a digest,
 * so that no two images have one name.
 */
export function templateNameOf(image: string): string {
  const readable = image.toLowerCase().replaceAll(/[^a-z0-9_]+/g, '-');
  return `${readable.replaceAll(/^-+|-+$/g, '').slice(0, readableLetters)}-${sha256(image).slice(0, 8)}`;
}

/** Reads the templates of images from an operator's file each time, so that a change needs no restart. */
export function createTemplates(path: string, api: Pick<E2bApi, 'hasTemplate' | 'probe'>): Templates {
  const found = new Map<string, number>();
  return {
    async of(image) {
      const named = await readOperatorFile(path, 'an object of templates by image', shape);
      const template = templateOf(image, named[image] ?? named['*'] ?? templateNameOf(image));
      // A server that replaces images may know no API for templates.
      if (Object.keys(template.metadata).length > 0) return template;
      if ((found.get(template.name) ?? 0) + foundMs > Date.now()) return template;
      if (!(await api.hasTemplate(template.name))) {
        // A server at a wrong address has no template either, which is no fault of the task.
        await api.probe();
        throw missingTemplate(image, template.name);
      }
      found.set(template.name, Date.now());
      return template;
    },
  };
}

function templateOf(image: string, choice: z.output<typeof shape>[string]): ImageTemplate {
  if (typeof choice === 'string') return { name: choice, metadata: {} };
  return { name: choice.template, metadata: { [choice.imageKey]: image } };
}

export function missingTemplate(image: string, template: string, cause?: unknown): SandboxFailure {
  const text = `the E2B server has no template ${template} for the image ${image}; build it with temper e2b template ${image}, or name another in e2b.json`;
  return new SandboxFailure('MissingImage', text, { cause });
}
