/** Implements `control init`: the folder of the control plane, its database, and the first operator token. */

import { mkdirSync } from 'node:fs'
import type { CliContext } from '../../../../channels/terminal/context.ts'
import type { Plane } from '../../../../control/contract/plane.ts'
import { command, type Flags } from '../../../args/command.ts'
import { jsonFlag } from '../../../args/turn-flags.ts'
import { commandError } from '../../../exit.ts'
import { withEnvFile } from '../../../server-files.ts'
import { writeSecret } from '../connect/screen.ts'
import { operatorTokenFile, secretIn } from '../connect/with-control.ts'
import { controlEnv, controlFolder, settingsOf, withPlane } from './open-plane.ts'

const flags = {
  name: { type: 'text', about: 'The name of its holder, which records show (default: operator)' },
  database: { type: 'text', about: 'postgres://… (default: CONTROLPLANE_DATABASE_URL, else SQLite in the home)' },
  newToken: { type: 'boolean', about: 'Make one more operator token, because the first is lost or stolen; revoke that one' },
  ...jsonFlag,
} as const satisfies Flags

export const init = command({
  flags,
  examples: [
    ['', 'makes the database and the first operator token; may be run again'],
    ['--new-token --name anna', 'one more token, in place of the one in operator.token'],
  ],
  details: () =>
    'A user who can write to the database can make operator tokens, so this command needs none. The token is printed once and kept in control/operator.token (mode 600), where the other commands find it.',
  async run(bare, { name = 'operator', database, newToken = false, json = false }) {
    const context = withEnvFile(bare)
    mkdirSync(controlFolder(context), { recursive: true, mode: 0o700 })
    await withPlane(context, controlEnv(context, { database }), async ({ plane, place }) => {
      const token = await tokenFor(context, plane, { name, newToken })
      show(context, { token, place, json })
    })
  },
})

/** Returns the new token; undefined when there is one already. */
async function tokenFor(
  context: CliContext,
  plane: Plane,
  { name, newToken }: { readonly name: string; readonly newToken: boolean },
): Promise<string | undefined> {
  const file = operatorTokenFile(context)
  const stored = newToken ? undefined : secretIn(file)
  if (stored !== undefined) {
    // The database may be another one than the token was made for, for example after a move to PostgreSQL.
    await plane.access.firstOperator(name, stored)
    return undefined
  }
  const secret = newToken ? randomToken() : undefined
  const operator = await plane.access.firstOperator(name, secret)
  if (operator === undefined)
    throw commandError(
      `this control plane has an operator already, and ${file} does not exist. Copy that token there (mode 600), or make one more: braidclaw control init --new-token`,
    )
  writeSecret(file, operator.token)
  return operator.token
}

function randomToken(): string {
  return `cpo_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')}`
}

function show(
  context: CliContext,
  { token, place, json }: { readonly token: string | undefined; readonly place: string; readonly json: boolean },
): void {
  const { stdout, stderr } = context.process
  const file = operatorTokenFile(context)
  if (json) return void stdout.write(`${JSON.stringify({ database: place, token_file: file, token })}\n`)
  if (token === undefined) return void stderr.write(`ready already: ${place}, with the operator token in ${file}\n`)
  stderr.write(`made ${place}, and an operator token in ${file} (mode 600). It is not shown again:\n`)
  stdout.write(`${token}\n`)
  stderr.write(nextSteps(settingsOf(context.env).port))
}

function nextSteps(port: number): string {
  return `next:
  braidclaw control                                  serve it, and its dashboard, on http://127.0.0.1:${port}
  braidclaw control agent add sysadmin --key         an agent and its key, in another terminal
  braidclaw control task add "…" --role sysadmin     a task for it
  braidclaw control status                           how things stand
`
}
