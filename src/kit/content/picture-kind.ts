/** Recognises pictures by their first bytes. */

const kinds = {
  jpg: { type: 'image/jpeg', ending: 'jpg' },
  png: { type: 'image/png', ending: 'png' },
  webp: { type: 'image/webp', ending: 'webp' },
  gif: { type: 'image/gif', ending: 'gif' },
} as const

/** @returns undefined when it is none of the four */
export function pictureKind(bytes: Uint8Array): (typeof kinds)[keyof typeof kinds] | undefined {
  const begins = (at: number, ...expected: readonly number[]) => expected.every((byte, n) => bytes[at + n] === byte)
  if (begins(0, 0xff, 0xd8, 0xff)) return kinds.jpg
  if (begins(0, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return kinds.png
  if (begins(0, 0x47, 0x49, 0x46, 0x38)) return kinds.gif
  return begins(0, 0x52, 0x49, 0x46, 0x46) && begins(8, 0x57, 0x45, 0x42, 0x50) ? kinds.webp : undefined
}
