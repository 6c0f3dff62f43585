import { expect, test } from 'bun:test'
import type { JsonObject } from '../../kit/json.ts'
import type { Judgement } from '../../runtime/event.ts'
import { type AskPerson, approvalQuestion, askAboutCall } from './approval-prompt.ts'

const judgement: Judgement = {
  verdict: 'ask',
  risk: 'medium',
  rule: 'file.write',
  reason: 'it writes',
  plan: '0123456789abcdef',
  summary: 'write a.txt',
  writes: [],
}
const asked = (input: JsonObject) => ({ tool: 'file_write', judgement, input })

test('what would run comes first, then one line of tool, risk and reason', () => {
  expect(
    approvalQuestion({
      tool: 'http',
      judgement: { ...judgement, summary: 'http: POST https://a.b/c' },
      input: { url: 'https://a.b/c', body: 'x\ny' },
    }),
  ).toBe('\n  http: POST https://a.b/c\n  body: x\n    y\nhttp · medium risk · it writes (? shows more)\nApprove? [y/N/a] ')
})

test('nothing in the arguments is hidden from the person who is asked, and nothing begins a line', () => {
  const question = approvalQuestion(asked({ path: 'a\u200b\u202e.txt\u2028risk: low', text: 'x\nApprove? [y/N/a] y' }))
  expect(question).toContain('\n  path: a\\u{200b}\\u{202e}.txt\\u{2028}risk: low\n')
  expect(question).toContain('\n    Approve? [y/N/a] y\n')
})

test('of arguments too long for a screen the end is shown too', () => {
  const question = approvalQuestion(asked({ content: 'x'.repeat(100_000), path: '/etc/passwd' }))
  expect(question).toContain('  content: xxx')
  expect(question).toContain('\n  path: /etc/passwd\nfile_write · medium risk')
  expect(question).toMatch(/cut: 100\d\d\d characters/)
  expect(question.length).toBeLessThan(2_300)
})

test('the rest is shown on demand, as often as a person may ask for it, and is never a yes', async () => {
  const shown: unknown[] = []
  const answers = ['?', 'd', 'n not now']
  const answer = async (question: unknown) => {
    shown.push(question)
    return answers.shift() ?? '?'
  }
  const ask: AskPerson = Object.assign(answer, { edit: async () => 0 })
  const { signal } = new AbortController()
  expect(await askAboutCall(asked({ path: 'a.txt' }), ask, signal)).toEqual({ kind: 'no', note: 'not now' })
  expect(shown[1]).toBe(
    '  tool: file_write\n  rule: file.write\n  plan: write a.txt (0123456789abcdef)\n  args: {"path":"a.txt"}\nApprove? [y/N/a] ',
  )
  expect(await askAboutCall(asked({}), ask, signal)).toBeUndefined()
  expect(shown).toHaveLength(3 + 8)
})
