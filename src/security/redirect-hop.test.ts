import { expect, test } from 'bun:test'
import { policyWith } from './gate.fixture.ts'
import type { Autonomy } from './policy.ts'
import { judgeHop } from './redirect-hop.ts'

function ruleOf(from: string, to: string, autonomy: Autonomy = 'supervised', method = 'GET', egress: 'ask' | 'open' = 'ask'): string {
  const policy = policyWith({ autonomy, workspace: '/ws', allowedDomains: ['good.org', 'fine.org'], egress })
  const verdict = judgeHop({ from: { url: from, method: 'GET' }, to: { url: to, method }, policy })
  return verdict.ok ? 'ok' : verdict.rule
}

test('an open redirect of an allowed domain does not lead to another one unasked', () => {
  expect(ruleOf('https://good.org/r', 'https://evil.net/?secret')).toBe('url.redirect')
  expect(ruleOf('https://good.org/r', 'https://evil.net/', 'readonly')).toBe('url.redirect')
  expect(ruleOf('https://good.org/r', 'https://fine.org/', 'supervised', 'POST')).toBe('url.redirect')
})

test('a redirect is judged like any URL, whatever was granted', () => {
  expect(ruleOf('https://good.org/r', 'http://169.254.169.254/', 'full')).toBe('url.private_address')
  expect(ruleOf('https://evil.net/', 'file:///etc/passwd', 'full')).toBe('url.scheme')
  expect(ruleOf('file:///etc/passwd', 'https://good.org/')).toBe('url.scheme')
})

test('a hop no riskier than what was granted goes on, and so does one that would run by itself', () => {
  expect(ruleOf('https://good.org/r', 'https://good.org/r')).toBe('ok')
  expect(ruleOf('https://good.org/r', 'https://fine.org/')).toBe('ok')
  expect(ruleOf('https://asked.net/', 'http://asked.net/other')).toBe('ok')
  expect(ruleOf('https://asked.net/', 'https://www.asked.net/')).toBe('ok')
  expect(ruleOf('https://www.asked.net/', 'https://asked.net/')).toBe('ok')
  expect(ruleOf('https://asked.net/', 'https://good.org/')).toBe('ok')
  expect(ruleOf('https://good.org/r', 'https://evil.net/', 'full', 'GET', 'open')).toBe('ok')
})

test('a yes to one host is no yes to another, at no level, unless egress is open in full', () => {
  for (const level of ['readonly', 'supervised', 'full'] as const)
    for (const other of ['https://other.net/', 'https://asked.net.evil.net/', 'https://wwww.asked.net/', 'https://sub.asked.net/'])
      expect([level, other, ruleOf('https://asked.net/', other, level)]).toEqual([level, other, 'url.redirect'])
})
