// What problems reach of what a device could do. Pure functions.

// Of trends with a time: {trend, intensity (flop/byte), flops (a second), bytes (a second)}.
export function rooflinePoints(trends) {
  return trends
    .filter((trend) => trend.served?.medianUs > 0 && trend.flops > 0 && trend.bytes > 0)
    .map((trend) => ({
      trend,
      intensity: trend.flops / trend.bytes,
      flops: (trend.flops / trend.served.medianUs) * 1e6,
      bytes: (trend.bytes / trend.served.medianUs) * 1e6,
    }));
}

// Roofs of a class: the theoretical bandwidth of its device, 0 when unknown, and the best that a problem reached here.
// No device says its arithmetic's peak, so the roof of that is the best reached.
export function roofsOf(points, device) {
  return {
    bandwidth: Number(device?.memoryBandwidthGbs ?? 0) * 1e9,
    reachedBytes: Math.max(0, ...points.map((point) => point.bytes)),
    reachedFlops: Math.max(0, ...points.map((point) => point.flops)),
  };
}

// The share of the lower of the two roofs over its intensity.
export function shareOfRoof(point, roofs) {
  const memory = (roofs.bandwidth || roofs.reachedBytes) * point.intensity;
  return point.flops / Math.min(memory, roofs.reachedFlops);
}
