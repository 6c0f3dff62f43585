import { expect, test } from 'bun:test'
import type { Judgement } from '../../runtime/event.ts'
import { approvalQuestion } from './approval-prompt.ts'

const judgement: Judgement = {
  verdict: 'ask',
  risk: 'medium',
  rule: 'file.write',
  reason: 'it writes',
  plan: '0123456789abcdef',
  summary: 'write a.txt',
  writes: [],
}
const argsIn = (args: string) => approvalQuestion({ tool: 'file_write', judgement, args }).match(/^ {2}args: (.*)$/m)?.[1] ?? ''

test('nothing in the arguments is hidden from the person who is asked, and nothing begins a line', () => {
  expect(argsIn('{"path":"a\u200b\u202e.txt\u2028risk: low"}')).toBe('{"path":"a\\u{200b}\\u{202e}.txt\\u{2028}risk: low"}')
})

test('of arguments too long for a screen the end is shown too', () => {
  const args = `{"content":"${'x'.repeat(100_000)}","path":"/etc/passwd"}`
  const shown = argsIn(args)
  expect(shown).toStartWith('{"content":"x')
  expect(shown).toEndWith('","path":"/etc/passwd"}')
  expect(shown).toContain(`${args.length} characters`)
  expect(shown.length).toBeLessThan(2_100)
})
