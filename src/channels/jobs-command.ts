/** Answers `/jobs` in a conversation, where a person lists the commands in its background and stops them, and `/status`. */

import type { Conversation } from '../host/api.ts'
import { count, cut, grouped, visible } from '../kit/text.ts'
import type { ChannelTrouble } from '../memory/recovery/channel-store.ts'
import { troubleLines } from './inbox/channel-api.ts'

const usage = 'usage: /jobs, or /jobs stop ID'

/** @returns undefined when the text is something else */
export async function jobsCommand(text: string, { jobs }: Pick<Conversation, 'jobs'>, by: string): Promise<string | undefined> {
  const [command, verb, id, ...more] = text.trim().split(/\s+/)
  if (command !== '/jobs') return undefined
  if (verb === undefined) return listed(jobs()?.list() ?? [])
  if (verb !== 'stop' || id === undefined || more.length > 0) return usage
  return (await jobs()?.end(id, by)) ? `${id} was stopped` : `no ${visible(id)} runs in the background (/jobs lists what does)`
}

function listed(jobs: ReturnType<NonNullable<ReturnType<Conversation['jobs']>>['list']>): string {
  if (jobs.length === 0) return 'no command was started in the background'
  return jobs
    .map(({ id, state, end, started, bytes, command }) => {
      const how = state === 'running' ? `running for ${count(Math.round((Date.now() - started) / 1000), 'second')}` : `ended: ${end}`
      return `${id}  ${how}, printed ${grouped(bytes)} bytes  ${cut(visible(command), 100)}`
    })
    .join('\n')
}

/** @returns what does not work on this home's channels; people with the limits of a chat do not read why */
export function statusAnswer(troubles: readonly ChannelTrouble[], isLimited: boolean): string {
  if (troubles.length === 0) return 'all channels work'
  return troubleLines(isLimited ? troubles.map((each) => ({ ...each, why: 'the log says why' })) : troubles).join('\n')
}
