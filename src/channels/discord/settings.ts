/** Defines the settings of [channels.discord]: the token and the channels to listen to. */

import type { Rows } from '../../kit/settings.ts'

export const discordRows = {
  enabled: { type: 'boolean', default: false, about: 'Whether the daemon also listens on Discord (docs/daemon.md).' },
  token_env: {
    type: 'text',
    form: 'variable',
    default: 'DISCORD_BOT_TOKEN',
    about: "The NAME of the variable that holds the bot's token.",
  },
  channel_ids: {
    type: 'words',
    form: 'snowflake',
    default: [],
    env: 'DISCORD_CHANNEL_ID',
    about: 'The Discord channels it listens and answers in; all others are ignored.',
  },
  api: {
    type: 'url',
    absent: 'https://discord.com/api',
    example: 'https://discord.com/api',
    about: 'Where the API of Discord is, for a proxy or a test.',
  },
} as const satisfies Rows
