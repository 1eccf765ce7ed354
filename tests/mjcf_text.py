"""An MJCF document with a joint of every kind."""

EVERY_JOINT = """
<mujoco model="zoo">
  <option gravity="0.3 -0.4 -9"/>
  <worldbody>
    <site name="origin" pos="0 0 0.5"/>
    <body name="turret" pos="0.1 0.2 0.3" quat="0.9 0.1 -0.2 0.3">
      <joint name="pan" axis="0.1 0.2 1" pos="0.05 -0.02 0" ref="0.4" range="-1 2" damping="0.7" frictionloss="0.2"
             actuatorfrcrange="-5 8"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.02 0.01 0.1" euler="10 20 30"/>
      <body name="stage" pos="0 0.3 0.1" euler="0 30 0">
        <joint name="x" type="slide" axis="1 0.2 0" ref="0.1"/>
        <joint name="tilt" axis="0 1 0.3" pos="0 0 0.2" ref="-0.2"/>
        <joint name="roll" axis="1 0 0" pos="0.1 0 0"/>
        <geom type="capsule" size="0.05 0.2" pos="0.1 0 0" euler="40 0 10"/>
        <body name="plate" pos="0.2 0 0">
          <geom type="sphere" size="0.07"/><site name="tip" pos="0.1 0 0" euler="0 90 0"/>
          <body name="ball" pos="0 0.1 -0.2" euler="20 0 0">
            <joint name="shoulder" type="ball" pos="0.01 0.02 0.03"/>
            <inertial mass="1.5" pos="0.1 0.2 0.3" fullinertia="0.05 0.06 0.07 0.003 -0.004 0.005"/>
          </body>
        </body>
      </body>
    </body>
    <body name="drone" pos="1 2 3" euler="10 20 30">
      <freejoint name="fly"/><geom type="ellipsoid" size="0.1 0.2 0.05" pos="0.01 0.02 0.03"/>
      <body name="rotor" pos="0 0 0.1"><joint name="spin"/><geom type="cylinder" size="0.1 0.01"/></body>
    </body>
  </worldbody>
</mujoco>
"""
