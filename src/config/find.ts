/** Finds the row of a key, and the rows of a provider's table. */

import { patternOf, type Setting } from './setting.ts'
import { settings } from './settings.ts'

export function settingOf(key: string): Setting | undefined {
  return byKey.get(key.startsWith('providers.') ? patternOf(key) : key)
}

const byKey: ReadonlyMap<string, Setting> = new Map(settings.map((setting) => [setting.key, setting]))

export const providerSettings: readonly Setting[] = settings.filter((setting) => setting.key.startsWith('providers.models.'))
