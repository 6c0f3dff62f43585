#!/usr/bin/env node
/** Whole days from one date to another. Runs on node and on bun. */

const description = {
  name: 'days_between',
  description: 'The number of days from one date to another, negative when the second is earlier.',
  parameters: {
    type: 'object',
    properties: {
      from: { type: 'string', description: 'A date such as 2026-02-12', pattern: '^\\d{4}-\\d{2}-\\d{2}$' },
      to: { type: 'string', description: 'Another', pattern: '^\\d{4}-\\d{2}-\\d{2}$' },
    },
    required: ['from', 'to'],
    additionalProperties: false,
  },
}

function days({ from, to }) {
  const [begin, end] = [from, to].map((text) => {
    const at = Date.parse(`${text}T00:00:00Z`)
    if (Number.isNaN(at) || !new Date(at).toISOString().startsWith(text)) throw new Error(`"${text}" is no date`)
    return at
  })
  return (end - begin) / 86_400_000
}

const [argument = '{}'] = process.argv.slice(2)
if (argument === '--describe') {
  console.log(JSON.stringify(description))
} else {
  try {
    console.log(`${days(JSON.parse(argument))} days`)
  } catch (error) {
    console.error(`days_between: ${error.message}`)
    process.exit(1)
  }
}
