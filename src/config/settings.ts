/** Every key of the configuration, once: type, default, range and meaning. Loading, `config schema`, the docs and completions read this table. */

import type { Setting } from './setting.ts'
import { channels } from './settings/channels.ts'
import { limits } from './settings/limits.ts'
import { providers } from './settings/providers.ts'
import { records } from './settings/records.ts'
import { security } from './settings/security.ts'
import { tools } from './settings/tools.ts'
import { top } from './settings/top.ts'

/** In the order of the docs. */
export const settings: readonly Setting[] = [...top, ...security, ...limits, ...providers, ...channels, ...tools, ...records]
