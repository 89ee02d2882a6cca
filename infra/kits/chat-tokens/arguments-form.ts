import { TemplateRejection } from './errors.ts';
import type { ArgumentsForm } from './model.ts';
import { type Renderer, renderText } from './render.ts';

const probe = 'temper-argument';

/** Finds out by rendering a call in each form, since templates do not declare theirs. */
export function argumentsFormOf(renderer: Omit<Renderer, 'argumentsForm'>): ArgumentsForm {
  const forms = ['object', 'text'] as const;
  return forms.find((argumentsForm) => printsArguments({ ...renderer, argumentsForm })) ?? 'none';
}

function printsArguments(renderer: Renderer): boolean {
  const call = { id: 'call', name: 'tool', arguments: JSON.stringify({ x: probe }) };
  try {
    const text = renderText(
      renderer,
      [
        { role: 'user', text: 'x' },
        { role: 'assistant', text: '', reasoning: '', toolCalls: [call] },
      ],
      [],
      'last-message',
    );
    return text.includes(probe);
  } catch (error) {
    if (error instanceof TemplateRejection) return false;
    throw error;
  }
}
