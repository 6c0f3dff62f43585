/** Tests the four shared cases of seed 002 for each tool loop; SHELLCLAW_TOOL_BACKEND chooses one, the fast tier tries one by itself. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../support/needs.ts'
import { isDeep } from '../../support/tier.ts'
import { call, calls, type Loop, type Play, play, say } from './stage.ts'

const programs = { native: ['bwrap'], bash: ['bwrap', 'jq', 'curl'], llm: ['bwrap', 'python3'] } as const
const loops: readonly Loop[] = [
  { backend: 'native', wire: 'openai-compatible' },
  { backend: 'bash', wire: 'anthropic' },
  { backend: 'llm', wire: 'openai-compatible' },
]
const chosen = process.env.SHELLCLAW_TOOL_BACKEND ?? (isDeep ? undefined : 'bash')
const tried = loops.filter(({ backend }) => chosen === undefined || backend === chosen)

/** Writes the stub skills, whose output is always the same. */
async function skills({ dir }: { readonly dir: string }): Promise<void> {
  for (const [name, parameter, body] of [
    ['weather', 'city', `printf 'sunny in %s' "$(printf %s "$1" | sed 's/.*:"\\(.*\\)".*/\\1/')"`],
    ['forecast', 'weather', 'echo tomorrow the same'],
    ['secret', 'any', 'touch secret-ran'],
  ] as const) {
    const parameters = { type: 'object', properties: { [parameter]: { type: 'string' } } }
    const description = JSON.stringify({ name, description: `The ${name}.`, parameters })
    const path = join(dir, 'ops/skills', `${name}.sh`)
    writeFileSync(path, `#!/bin/sh\nif [ "$1" = --describe ]; then echo '${description}'; exit; fi\n${body}\n`)
    chmodSync(path, 0o755)
  }
}

test('there is a loop to try', () => expect(tried).not.toEqual([]))

describe.each(tried)('$backend', (loop) => {
  const given = test.if(needs(...programs[loop.backend]))
  const shared = (replies: Play['replies'], message: string) =>
    play(loop, { replies, message, tools: [{ name: 'weather' }, { name: 'forecast' }], before: skills })

  given('1: a single tool call: the skill executes, its result is fed back, and the final text is printed', async () => {
    const { code, stdout, transcript } = await shared(
      [calls(call('weather', { city: 'Bern' })), say('It is sunny.')],
      "What's the weather?",
    )
    expect([code, stdout]).toEqual([0, 'It is sunny.\n'])
    expect(transcript).toEqual([{ name: 'weather', args: { city: 'Bern' }, result: 'sunny in Bern' }])
  })

  given('2: no tool call is needed: the text is printed, and no tool is dispatched', async () => {
    const { code, stdout, transcript, receipts, fake } = await shared([say('Hello, you.')], 'Hello')
    expect([code, stdout, transcript, receipts]).toEqual([0, 'Hello, you.\n', [], []])
    expect(fake.asked[0]?.text).toContain('"weather"')
  })

  given('3: a tool that is not in the list: "Tool not permitted" is fed back to the model', async () => {
    const { code, stdout, transcript, home } = await shared([calls(call('secret', {})), say('I may not.')], 'Tell me the secret')
    expect([code, stdout]).toEqual([0, 'I may not.\n'])
    expect(transcript[0]?.result).toStartWith('Tool not permitted')
    expect(existsSync(join(home.workspace, 'secret-ran'))).toBe(false)
  })

  given('4: several rounds: each call follows the result of the one before, and a last text sums up', async () => {
    const replies = [
      calls(call('weather', { city: 'Bern' })),
      calls(call('forecast', { weather: 'sunny' })),
      say('Sunny, and tomorrow too.'),
    ]
    const { code, stdout, transcript, requests } = await shared(replies, 'And tomorrow?')
    expect([code, stdout, requests]).toEqual([0, 'Sunny, and tomorrow too.\n', 3])
    expect(transcript.map(({ name, result }) => `${name}: ${result}`)).toEqual(['weather: sunny in Bern', 'forecast: tomorrow the same\n'])
  })
})
