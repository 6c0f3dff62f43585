/** Explains the close codes with which Discord ends a connection for good. */

import { PORTAL } from './refusal.ts'

/** @param intents the requested bit mask. @returns what is wrong and what to do about it */
export function closingMessage({ code, reason, intents }: { code: number | undefined; reason: string; intents: number }): string {
  const known = code === undefined ? undefined : messages(intents)[code]
  return known ?? `Discord ended the connection for good (${code ?? 'no code'}): ${reason || 'no reason given'}`
}

const messages = (intents: number): { readonly [code: number]: string } => ({
  4004: `Discord refuses the bot token (4004); copy it anew from ${PORTAL}, page Bot (DISCORD_BOT_TOKEN)`,
  4010: 'Discord refuses our share of the connections (4010 invalid shard); this is a fault of ours',
  4011: 'the bot is in more servers than one connection serves (4011 sharding required); use a bot of its own for this',
  4012: 'Discord no longer speaks version 10 of its gateway (4012); update this program',
  4013: `intents: ${intents} is no set of intents that Discord knows (4013)`,
  4014:
    `intents: ${intents} holds one that this bot has not been granted (4014); turn on "Message Content Intent" at ${PORTAL}, page Bot, ` +
    'or ask for 512 only, and read only messages that mention the bot',
})
