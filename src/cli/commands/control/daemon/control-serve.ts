/** Implements `control serve`, which is what `control` alone does. */

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CliContext } from '../../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../../channels/terminal/signals.ts'
import { errorCode, explainErrno } from '../../../../config/text/read-toml-file.ts'
import { type OpenControlOptions, type OpenedControl, openControl } from '../../../../control/server/open-control.ts'
import { isLoopback } from '../../../../http/listen.ts'
import { listenProblem } from '../../../../http/serve-api.ts'
import { aborted } from '../../../../kit/abort.ts'
import { command, type Flags, type Given } from '../../../args/command.ts'
import { serverFileFlags } from '../../../args/turn-flags.ts'
import { CliExit, commandError, usageError } from '../../../exit.ts'
import { withServerFiles } from '../../../server-files.ts'
import { knownOperatorToken } from '../connect/with-control.ts'
import { controlEnv, controlLog, lockDatabase, placeOf, refusalAsExit, settingsOf, withPlane } from './open-plane.ts'

const flags = {
  port: { type: 'whole', min: 0, max: 65_535, about: 'The port; 0 is any free one (default: CONTROLPLANE_API_PORT, else 3100)' },
  host: { type: 'text', about: 'The address to listen on (default: 127.0.0.1); another one needs an operator first' },
  allowHost: { type: 'text', many: true, about: 'A name under which a proxy or another machine reaches it; may be repeated' },
  compatFrom: {
    type: 'text',
    many: true,
    about: 'A network, such as 10.0.0.0/24, from which the shared secret counts besides this machine; may be repeated',
  },
  database: { type: 'text', about: 'postgres://… (default: CONTROLPLANE_DATABASE_URL, else SQLite in the home)' },
  tlsCert: { type: 'text', about: 'The certificate chain, PEM; with --tls-key it speaks HTTPS' },
  tlsKey: { type: 'text', about: 'The private key of the certificate, PEM' },
  ...serverFileFlags,
} as const satisfies Flags
type ServeFlags = Given<typeof flags>

/** @throws CliExit when it cannot start; it ends with exit code 0 on a stop signal */
export const serve = command({
  flags,
  examples: [
    ['', 'on http://127.0.0.1:3100, with SQLite in the home'],
    ['--port 0', 'on any free port, which the ready line names'],
    ['--compat-from 10.17.0.0/16', 'jails of that network may use the shared secret'],
    ['--allow-host control.example.org', 'behind a proxy that other machines reach under this name'],
  ],
  run: (context, given) => withServerFiles(context, given, (logged) => run(logged, given)),
})

async function run(context: CliContext, given: ServeFlags): Promise<void> {
  const env = controlEnv(context, given)
  const settings = settingsOf(env)
  using _lock = lockDatabase(context, settings, 'stop that one first. Several daemons may share a PostgreSQL database: --database')
  if (!isLoopback(given.host ?? '127.0.0.1')) await assertOperator(context, env, given.host ?? '')
  using interrupt = onInterrupt(() => {})
  const control = await opened(context, given, env)
  context.say(`ready: ${control.url} (${placeOf(context, settings)}); stop with Ctrl-C or SIGTERM\n`)
  await hintOperator(context, control)
  await aborted(interrupt.signal)
  await control.close()
}

async function opened(context: CliContext, given: ServeFlags, env: CliContext['env']): Promise<OpenedControl> {
  const options = { env, home: context.home, log: controlLog(context), ...listenOptions(context, given) }
  try {
    return await refusalAsExit(() => openControl(options))
  } catch (error) {
    if (error instanceof CliExit) throw error
    throw commandError(`${given.host ?? '127.0.0.1'}:${given.port ?? settingsOf(env).port}: ${listenProblem(error)}`)
  }
}

type ListenOptions = Pick<OpenControlOptions, 'host' | 'port' | 'tls' | 'allowedHosts' | 'compatFrom'>

function listenOptions(context: CliContext, { host, port, allowHost, compatFrom, tlsCert, tlsKey }: ServeFlags): ListenOptions {
  if ((tlsCert === undefined) !== (tlsKey === undefined)) throw usageError('--tls-cert and --tls-key belong together; pass both')
  const tls = tlsCert === undefined || tlsKey === undefined ? undefined : { cert: pem(context, tlsCert), key: pem(context, tlsKey) }
  return { host, port, tls, allowedHosts: allowHost ?? [], compatFrom: compatFrom ?? [] }
}

function pem({ cwd }: CliContext, path: string): string {
  try {
    return readFileSync(resolve(cwd, path), 'utf8')
  } catch (error) {
    throw commandError(`${path}: ${explainErrno(errorCode(error))}`)
  }
}

/** Refuses an address that other machines can reach while the control plane has no operator. @throws CliExit 1 */
async function assertOperator(context: CliContext, env: CliContext['env'], host: string): Promise<void> {
  if (env.CONTROLPLANE_OPERATOR_TOKEN) return
  if ((await withPlane(context, env, ({ plane }) => plane.access.operators(self))).some(({ revoked_at: revoked }) => revoked === null))
    return
  throw commandError(
    `--host ${host}: other machines reach this address, and no operator exists yet; make one first: braidclaw control init`,
  )
}

const self = { kind: 'operator', id: 'self', name: 'this machine' } as const

async function hintOperator(context: CliContext, { plane }: OpenedControl): Promise<void> {
  const operators = await plane.access.operators(self)
  if (operators.length === 0) context.say('note: no operator exists yet; in another terminal: braidclaw control init\n')
  else if (!knownOperatorToken(context))
    context.say('note: no operator token is kept in this home; commands here need CONTROLPLANE_OPERATOR_TOKEN\n')
}
