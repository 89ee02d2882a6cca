import { z } from 'zod';
import { readOperatorFile } from '../../operator-file.ts';
import { SandboxFailure } from '../failure.ts';
import type { E2bApi } from './api.ts';

/** The templates of images whose own does not follow the rule, by image. */
const shape = z.record(z.string().min(1), z.string().min(1));

/** The time for which a template that was found is not looked for again. */
const foundMs = 300_000;

export interface Templates {
  /** Returns the template of an image. Throws MissingImage if the server has none. */
  of(image: string): Promise<string>;
}

/** The name of an image's template where `e2b.json` names none: `ghcr.io/a/b:1.2` has `ghcr-io-a-b-1-2`. */
export const templateNameOf = (image: string): string =>
  image
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');

/** Reads the templates of images from an operator's file each time, so that a change needs no restart. */
export function createTemplates(path: string, api: Pick<E2bApi, 'hasTemplate' | 'probe'>): Templates {
  const found = new Map<string, number>();
  return {
    async of(image) {
      const template =
        (await readOperatorFile(path, 'an object of templates by image', shape))[image] ?? templateNameOf(image);
      if ((found.get(template) ?? 0) + foundMs > Date.now()) return template;
      if (!(await api.hasTemplate(template))) {
        // A server at a wrong address has no template either, which is no fault of the task.
        await api.probe();
        throw missingTemplate(image, template);
      }
      found.set(template, Date.now());
      return template;
    },
  };
}

export function missingTemplate(image: string, template: string, cause?: unknown): SandboxFailure {
  const text = `the E2B server has no template ${template} for the image ${image}; build it from the image, or name another in e2b.json`;
  return new SandboxFailure('MissingImage', text, { cause });
}
