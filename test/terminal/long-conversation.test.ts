import { expect, test } from 'bun:test'
import { type Nest, nest } from '../support/cli.ts'
import { everyTool } from '../support/turns.ts'

/** Summaries come out of the same fixture: the third reply is the summary of the turn that made the conversation long. */
async function talk(at: Nest, prompt: string, responses: readonly object[]) {
  const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses), HISTORY_MAX: '4', HISTORY_KEEP: '2' }
  return at.run(['agent', '-c', '-m', prompt], { env })
}

async function long(at: Nest, summary: object) {
  at.config(everyTool)
  const first = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ text: 'Noted.' }]), HISTORY_MAX: '4', HISTORY_KEEP: '2' }
  expect((await at.run(['agent', '-m', 'My bicycle is green'], { env: first })).code).toBe(0)
  expect((await talk(at, 'and my aardvark grey', [{ text: 'Noted too.' }])).stderr).not.toContain('summarising')
  return talk(at, 'hello again', [{ text: 'Hello.' }, summary])
}

test('a conversation that has become long is summarised after the answer, and goes on from the summary', async () => {
  using at = nest()
  const third = await long(at, { text: 'The bicycle is green, the aardvark grey.' })
  expect(third).toMatchObject({ code: 0, stdout: 'Hello.\n' })
  expect(third.stderr).toContain('summarising its older part')

  const fourth = await talk(at, 'what was green?', [{ text: '{{last_user_message}}' }])
  expect(fourth.code).toBe(0)
  expect(fourth.stderr).not.toContain('summarising')
  const found = await at.run(['memory', 'search', 'aardvark'])
  expect(found.stdout).toContain('aardvark')
  expect((await at.run(['rebuild', '--check'])).code).toBe(0)
  expect((await at.run(['receipt', 'verify'])).code).toBe(0)
})

test('a summary that fails changes neither answer nor exit code, and the turns stay', async () => {
  using at = nest()
  const third = await long(at, { error: 'server' })
  expect(third).toMatchObject({ code: 0, stdout: 'Hello.\n' })
  expect((await talk(at, 'still there?', [{ text: 'Yes.' }])).stdout).toBe('Yes.\n')
})
