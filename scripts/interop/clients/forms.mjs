// The person at the client: takes the first choice of everything that is asked.
export function answerForm({ requestedSchema }) {
  const chosen = Object.entries(requestedSchema?.properties ?? {}).flatMap(([name, schema]) => {
    const choice = schema.enum?.[0] ?? schema.oneOf?.[0]?.const ?? schema.default;
    return choice === undefined ? [] : [[name, choice]];
  });
  return { action: 'accept', content: Object.fromEntries(chosen) };
}
