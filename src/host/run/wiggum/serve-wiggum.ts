/** Goes on with the wiggum runs whose process died, in a process that stays. */

import { errorText } from '../../../kit/errors.ts'
import type { ConversationOptions, Host } from '../../api.ts'
import { openHost } from '../../open/open-host.ts'
import { loadSetup } from '../../setup/setup.ts'
import { disown, isInterrupted, listRecords, own, type WiggumRecord } from './run-copy.ts'
import { workOn } from './wiggum-run.ts'

/** A run that dies again and again ends the process each time, so that it goes on by itself only this often. */
const mostTimes = 20

/** Begins at once and never rejects; `closed` resolves when all runs have ended after the signal. */
export function serveWiggum(
  { setup }: Pick<Host, 'setup'>,
  brought: Pick<ConversationOptions, 'tools'>,
  signal: AbortSignal,
): { readonly closed: Promise<void> } {
  const { log, config } = setup
  async function goOn(record: WiggumRecord): Promise<void> {
    const run = record.runs.at(-1) ?? record.id
    let host: Host | undefined
    try {
      const own = loadSetup(setup.context, { ...record.settings, workspace: record.workspace })
      host = await openHost(own, { ahead: false })
      log('info', 'wiggum run goes on', { run, workspace: record.workspace })
      const say = (line: string) => log('info', line, { run })
      const { ending } = await workOn({ host, setup: own, record, show: () => {}, say, signal, brought })
      log('info', 'wiggum run ended', { run, code: ending.code, message: ending.message })
    } catch (error) {
      disown(setup, record.id)
      log('error', 'wiggum run does not go on', { run, why: errorText(error) })
    } finally {
      await host?.close()
    }
  }
  const asked = config.continueTurns === 'auto' || config.continueTurns === undefined
  const dead = asked ? listRecords(setup).filter((record) => isInterrupted(setup, record) && record.runs.length <= mostTimes) : []
  return { closed: Promise.all(dead.filter(({ id }) => own(setup, id)).map(goOn)).then(() => undefined) }
}
