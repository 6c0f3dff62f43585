/** Used when no model is configured: the smallest model of the vendor whose API the FIFOs speak, by its API name. */
export const seedModel = 'claude-haiku-4-5-20251001'
