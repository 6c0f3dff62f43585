/** Reads the settings of a control plane from the environment. */

import { usualMostReported } from '../plane/budget/reservations.ts'
import { usualOpenTasks } from '../plane/tasks/create-task.ts'

export type ControlEnvironment = { readonly [name: string]: string | undefined }

export type ControlSettings = Readonly<ReturnType<typeof controlSettings>>

/** @throws Error that names the variable, its value and what to write */
export function controlSettings(env: ControlEnvironment) {
  return {
    port: wholeOf(env, 'CONTROLPLANE_API_PORT', { usual: 3_100, least: 0, most: 65_535 }),
    sharedSecret: textOf(env, 'CONTROLPLANE_SHARED_SECRET'),
    /** Absent for SQLite in the home. */
    databaseUrl: databaseOf(env),
    leaseSeconds: wholeOf(env, 'CONTROLPLANE_LEASE_SECONDS', { usual: 60, least: 1, most: 86_400 }),
    approvalHours: wholeOf(env, 'CONTROLPLANE_APPROVAL_HOURS', { usual: 24, least: 1, most: 8_760 }),
    /** Old records are deleted after this many days; with 0 they stay. */
    retentionDays: wholeOf(env, 'CONTROLPLANE_RETENTION_DAYS', { usual: 0, least: 0, most: 36_500 }),
    /** Limits how many tasks that one agent created may be open at a time. */
    openTasksOfAgent: wholeOf(env, 'CONTROLPLANE_AGENT_OPEN_TASKS', { usual: usualOpenTasks, least: 0, most: 1_000_000 }),
    /** Limits the tokens that one run, or one error, may report. */
    mostTokensOfReport: wholeOf(env, 'CONTROLPLANE_REPORT_TOKENS', { usual: usualMostReported, least: 1_000, most: 1e12 }),
    operatorToken: tokenOf(env),
    hostdSocket: textOf(env, 'CONTROLPLANE_HOSTD_SOCKET'),
  }
}

function textOf(env: ControlEnvironment, name: string): string | undefined {
  const value = env[name]
  return value === '' ? undefined : value
}

type NumberRange = { readonly usual: number; readonly least: number; readonly most: number }

function wholeOf(env: ControlEnvironment, name: string, { usual, least, most }: NumberRange): number {
  const value = textOf(env, name)
  if (value === undefined) return usual
  if (/^\d{1,13}$/.test(value) && Number(value) >= least && Number(value) <= most) return Number(value)
  throw new Error(`${name}: ${JSON.stringify(value)} is not a whole number from ${least} to ${most}`)
}

/** Reads a URL that has a password, so no message shows it. */
function databaseOf(env: ControlEnvironment): string | undefined {
  const value = textOf(env, 'CONTROLPLANE_DATABASE_URL')
  if (value === undefined || /^postgres(ql)?:\/\/[^\s]+$/.test(value)) return value
  throw new Error('CONTROLPLANE_DATABASE_URL: write it as postgres://user:password@host:5432/name, or leave it out for SQLite')
}

/** This many base 64 characters hold 128 random bits. */
const leastToken = 22

function tokenOf(env: ControlEnvironment): string | undefined {
  const value = textOf(env, 'CONTROLPLANE_OPERATOR_TOKEN')
  if (value === undefined) return undefined
  if (/^[\x21-\x2b\x2d-\x7e]{1,512}$/.test(value) && value.length >= leastToken && !/^cp[ar]_/.test(value)) return value
  throw new Error(
    `CONTROLPLANE_OPERATOR_TOKEN: use ${leastToken} to 512 visible ASCII characters without spaces and commas, for example: openssl rand -base64 24`,
  )
}
