/** What Claude said in a message that was kept, if it said anything. */
export function assistantText(data: unknown): string | undefined {
  const { type, message } = data as { type?: unknown; message?: { content?: unknown } };
  if (type !== 'assistant' || !Array.isArray(message?.content)) return undefined;
  const texts = (message.content as { type?: unknown; text?: unknown }[])
    .filter((block) => block.type === 'text' && typeof block.text === 'string')
    .map((block) => block.text as string);
  return texts.length === 0 ? undefined : texts.join('\n');
}
