import { expect, test } from 'bun:test'
import { controlSettings } from './control-options.ts'

test('without a word in the environment everything has its usual value', () => {
  expect(controlSettings({ CONTROLPLANE_SHARED_SECRET: '' })).toEqual({
    port: 3100,
    sharedSecret: undefined,
    databaseUrl: undefined,
    leaseSeconds: 60,
    approvalHours: 24,
    retentionDays: 0,
    openTasksOfAgent: 1_000,
    mostTokensOfReport: 100_000_000,
    operatorToken: undefined,
    hostdSocket: undefined,
  })
})

test('a value that cannot be right is named with what to write, and a password is never shown', () => {
  for (const [name, value] of [
    ['CONTROLPLANE_API_PORT', '70000'],
    ['CONTROLPLANE_API_PORT', '3100x'],
    ['CONTROLPLANE_LEASE_SECONDS', '0'],
    ['CONTROLPLANE_LEASE_SECONDS', '1e9'],
    ['CONTROLPLANE_APPROVAL_HOURS', '-1'],
    ['CONTROLPLANE_RETENTION_DAYS', 'never'],
    ['CONTROLPLANE_AGENT_OPEN_TASKS', '1,000'],
    ['CONTROLPLANE_REPORT_TOKENS', '0'],
    ['CONTROLPLANE_REPORT_TOKENS', '99999999999999'],
  ] as const)
    expect(() => controlSettings({ [name]: value })).toThrow(`${name}: "${value}"`)
  for (const token of ['short', 'cpa_looks-like-the-key-of-an-agent', 'two words in the token xx'])
    expect(() => controlSettings({ CONTROLPLANE_OPERATOR_TOKEN: token })).toThrow('CONTROLPLANE_OPERATOR_TOKEN')
  const url = 'mysql://me:secret@host/db'
  expect(() => controlSettings({ CONTROLPLANE_DATABASE_URL: url })).toThrow(/^(?!.*secret).*postgres:\/\//)
})
