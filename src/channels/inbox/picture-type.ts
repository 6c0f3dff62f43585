/** Recognises pictures by their first bytes; what a server or a person says about them is not asked. */

import type { Picture } from '../../runtime/port.ts'

export type PictureKind = { readonly type: Picture['type']; readonly ending: 'jpg' | 'png' | 'webp' }

/** @returns undefined when it is none of the three */
export function pictureKind(bytes: Uint8Array): PictureKind | undefined {
  const begins = (at: number, ...wanted: readonly number[]) => wanted.every((byte, n) => bytes[at + n] === byte)
  if (begins(0, 0xff, 0xd8, 0xff)) return { type: 'image/jpeg', ending: 'jpg' }
  if (begins(0, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return { type: 'image/png', ending: 'png' }
  const isWebp = begins(0, 0x52, 0x49, 0x46, 0x46) && begins(8, 0x57, 0x45, 0x42, 0x50)
  return isWebp ? { type: 'image/webp', ending: 'webp' } : undefined
}
