/** [channels.…]: where people talk to the agent. */

import type { Setting } from '../setting.ts'

export const channels: readonly Setting[] = [
  { key: 'channels.cli.enabled', type: 'boolean', default: true, about: 'Whether `braidclaw agent` may be used.' },
  {
    key: 'channels.cli.tools_allow',
    type: 'words',
    form: 'tool',
    project: 'stricter',
    absent: 'every built-in tool',
    about: 'The tools offered to the model on the command line.',
  },
  {
    key: 'channels.discord.enabled',
    type: 'boolean',
    default: false,
    project: 'refused',
    about: 'Whether the daemon also listens on Discord (docs/daemon.md).',
  },
  {
    key: 'channels.discord.token_env',
    type: 'text',
    form: 'variable',
    default: 'DISCORD_BOT_TOKEN',
    project: 'refused',
    about: "The NAME of the variable that holds the bot's token.",
  },
  {
    key: 'channels.discord.channel_ids',
    type: 'words',
    form: 'snowflake',
    default: [],
    env: 'DISCORD_CHANNEL_ID',
    project: 'refused',
    about: 'The Discord channels it listens and answers in; all others are ignored.',
  },
  {
    key: 'channels.discord.approvers',
    type: 'words',
    form: 'snowflake',
    default: [],
    project: 'refused',
    about: 'The Discord users (ids) who may answer there what a call needs a yes for; nobody is asked there when empty.',
  },
  {
    key: 'channels.fifo.approvers',
    type: 'words',
    form: 'any',
    default: [],
    project: 'refused',
    about: 'The channels of interact_in whose writers may answer what a call needs a yes for; nobody is asked there when empty.',
  },
  {
    key: 'channels.discord.api',
    type: 'url',
    project: 'refused',
    absent: 'https://discord.com/api',
    about: 'Where the API of Discord is, for a proxy or a test.',
  },
]
