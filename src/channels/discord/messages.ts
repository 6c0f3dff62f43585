/** Discord as one of the channels: its messages with the way back for their answers. */

import type { Log } from '../../runtime/port.ts'
import type { Heard } from '../inbound-message.ts'
import type { Discord } from './connect.ts'

/** Ends with the connection. */
export async function* discordMessages(discord: Discord, log: Log): AsyncGenerator<Heard> {
  for await (const { channel, text } of discord.messages)
    yield {
      channel,
      text,
      from: 'discord',
      working: () => void discord.typing(channel),
      async answer(words) {
        const sent = await discord.send(channel, words)
        if (!sent.ok) log('warn', 'answer not delivered', { to: channel, why: sent.message })
      },
    }
}
