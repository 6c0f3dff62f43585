/** Completes the text of a message when its turn begins. */

import type { Setup, TurnPlace } from '../../host/api.ts'
import type { BotApi } from './bot-api.ts'
import type { TelegramSettings } from './channel.ts'
import type { TelegramMessage } from './inbound.ts'

export type Completing = TurnPlace & {
  readonly setup: Setup
  readonly api: BotApi
  readonly settings: TelegramSettings
  readonly signal: AbortSignal
}

/** Never rejects. */
export async function completeText(message: TelegramMessage, _completing: Completing): Promise<string> {
  return message.text
}
